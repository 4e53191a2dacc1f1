// Wind, slips and one-way doors (notebook 07, `explore_dynamics`): a row of Ψ, a direction with its option, the same without any of
// these, and the eigenvalues, which may now be complex.

const explorer = (() => {
  const SHARES = kernel.range(21).map((k) => k / 20), percent = (share) => `${Math.round(100 * share)} %`, MANY = 260; // tiles, solved densely

  function render(given) {
    const desk = stage.desk(given, "dynamics"), { get, set } = desk, last = () => Math.min(10, desk.world.n - 1);
    const index = () => Math.max(0, Math.min(last(), get("vector"))), state = () => Math.max(0, Math.min(desk.world.n - 1, get("state")));
    desk.slide("wind", "wind", SHARES, { show: percent, wide: true });
    desk.slide("slip", "slip", SHARES, { show: percent });
    desk.slide("γ", "gamma", stage.GAMMAS, { show: stage.short });
    desk.slide("eigenvector", "vector", () => kernel.range(last() + 1), { show: () => `e${stage.subscript(index())}` });
    desk.choose("sign", "sign", [[1, "+"], [-1, "−"]]);
    desk.choose("a click", "tool", [["row", "shows a row"], ["^", "door ↑"], [">", "door →"], ["v", "door ↓"], ["<", "door ←"], [".", "no door"]]);
    desk.mazes();
    // A door is a letter of the map; one that would open into a wall is not built.
    const pick = (s) => {
      if (get("tool") === "row") { set({ state: s }); return; }
      const rows = desk.world.rows.map((line) => [...line]), [r, c] = desk.world.cells[s];
      rows[r][c] = get("tool");
      const text = rows.map((line) => line.join("")).join("\n");
      try { kernel.parse(text); set({ text }); } catch (problem) { desk.problem = problem.message; desk.wake(); }
    };
    const hand = { tiles: true, pick, slow: true, at: state }, [ofRow, ofNow, ofCalm] = [desk.panel(hand), desk.panel(hand), desk.panel({ tiles: true })], ofValues = desk.panel();
    let psi, values, purposes, calm, policy, calmPolicy, stale = 0;

    // Ψ at once; its eigenvectors, which take longer, a frame later, unless there is nothing of this map to be seen yet.
    function solve() {
      const { world } = desk, gamma = get("gamma");
      if (world.n > MANY) throw new Error(`This explorer takes maps of up to ${MANY} tiles; this one has ${world.n}.`);
      psi = kernel.inverse(kernel.transitions(world, get("wind")).map((row, s) => row.map((entry, t) => (s === t ? 1 : 0) - gamma * entry)));
      stale = purposes?.of === world ? 2 : 1;
    }
    function extract() {
      const { world } = desk;
      values = kernel.eigenvalues(psi);
      purposes = Object.assign(kernel.generalEigenpurposes(psi, last() + 1, values), { of: world });
      calm = kernel.eigenpurposes(kernel.parse(world.text.replace(/[\^>v<]/g, ".")), last() + 1);
      steer();
    }
    function steer() {
      if (stale) return;
      const { world } = desk, k = index(), sign = get("sign") < 0 ? -1 : 1, like = kernel.dot(purposes[k].vector, calm[k].vector) < 0 ? -1 : 1;
      purposes.shown = purposes[k].vector.map((entry) => sign * entry);
      calm.shown = calm[k].vector.map((entry) => sign * like * entry);
      policy = kernel.eigenoption(world, purposes.shown, get("gamma"), kernel.outcomes(world, get("slip"), get("wind")));
      calmPolicy = kernel.eigenoption(kernel.parse(world.text.replace(/[\^>v<]/g, ".")), calm.shown, get("gamma"));
    }

    function paint() {
      if (stale && --stale === 0) extract();
      const { world, theme } = desk, k = index(), s = state(), name = `${get("sign") < 0 ? "−" : ""}e${stage.subscript(k)}`;
      desk.map(ofRow, stage.glow(psi[s], theme, Math.max(...psi[s], 1e-9)), { dots: [s] });
      desk.map(ofNow, stage.signed(purposes.shown, theme, 2.4), { policy });
      desk.map(ofCalm, stage.signed(calm.shown, theme, 2.4), { policy: calmPolicy });
      const far = Math.max(0.1, ...values.map(([, im]) => Math.abs(im))), top = Math.max(...values.map(([re]) => re), 1.2), low = Math.min(0.9, ...values.map(([re]) => re)), round = +far.toPrecision(1);
      const chart = desk.chart(ofValues, { from: Math.max(0.3, low), to: top, log: true, ticks: [0.5, 1, 2, 5, 10, 50, 200, 1000].filter((tick) => tick <= top), label: "real part" }, { from: -1.2 * far, to: 1.2 * far, ticks: [-round, 0, round] });
      chart.line([[0.3, 0], [top, 0]], theme.grey, 1);
      chart.dots(values, theme.sr, 3);
      chart.dots(values.filter(([, im]) => Math.abs(im) > 1e-9), theme.pvf, 3);
      const score = kernel.alignment(purposes[k].vector, calm, k), pairs = values.filter(([, im]) => im > 1e-9).length, ends = policy.filter((action) => action < 0).length;
      chart.dots([[purposes[k].value, purposes[k].im ?? 0]], theme.accent, 6);
      ofRow.say("a row of Ψ, at the dot", `Row of Ψ at ${desk.place(s)}. Arrow keys choose a tile, space ${get("tool") === "row" ? "shows its row" : "changes its door"}.`);
      ofNow.say(`${name} here; it ends in ${ends} tile${ends === 1 ? "" : "s"}`, `Direction ${k} with wind ${percent(get("wind"))} and slip ${percent(get("slip"))}; its option ends in ${ends} tiles.`);
      ofCalm.say(`calm and without doors; alignment ${score.toFixed(2)}`, `Direction ${k} without wind, slips and doors; alignment ${score.toFixed(2)}.`);
      ofValues.say(`eigenvalues of Ψ: ${pairs ? `${pairs} complex pair${pairs === 1 ? "" : "s"}` : "all real"}`);
      const t = desk.hover;
      desk.say(t === null ? (policy.every((action, i) => action === calmPolicy[i]) ? "The option does what it does in calm air." : `In ${policy.filter((action, i) => action !== calmPolicy[i]).length} of ${world.n} tiles the option does something else than in calm air.`)
        : `${desk.Place(t)}: Ψ ${psi[s][t].toFixed(3)}; ${name} ${purposes.shown[t].toFixed(3)} here, ${calm.shown[t].toFixed(3)} in calm air.`);
      return { more: stale > 0, wind: get("wind"), slip: get("slip"), gamma: get("gamma"), vector: k, state: s, row: [...psi[s]], shown: [...purposes.shown], policy, pairs, score };
    }
    return desk.start({ text: solve, gamma: solve, wind: solve, slip: steer, vector: steer, sign: steer, state: () => {}, tool: () => {} }, paint);
  }
  return { render };
})();
