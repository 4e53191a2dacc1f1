// Ψ = I + γT + γ²T² + … as a film (notebook 01, `explore_sums`): where the walk is after t steps, the sum so far, the whole sum, and
// how much of it has been made.

const explorer = (() => {
  const STOPS = [...kernel.range(61), ...kernel.range(20).map((k) => 65 + 5 * k)], DECADES = 8;

  function render(given) {
    const desk = stage.desk(given, "sums"), { get, set } = desk, start = () => Math.max(0, Math.min(desk.world.n - 1, get("state")));
    desk.play("step", STOPS, 160);
    desk.slide("terms up to t", "step", STOPS, { wide: true });
    desk.slide("γ", "gamma", stage.GAMMAS, { wide: true, show: stage.short });
    desk.mazes();
    const pick = { tiles: true, pick: (s) => set({ state: s }), at: start }, [ofStep, ofSum, ofWhole] = [desk.panel(pick), desk.panel(pick), desk.panel(pick)], ofShare = desk.panel();
    let chances, sums, whole;

    // chances[t]: where the walk from the start may be after t steps; sums[t]: what is counted of it up to there.
    function walk() {
      const { n, next } = desk.world, gamma = get("gamma");
      chances = [new Float64Array(n)];
      chances[0][start()] = 1;
      for (let t = 1; t <= STOPS.at(-1); t++) {
        const ahead = new Float64Array(n);
        next.forEach((to, i) => { ahead[to] += chances[t - 1][i >> 2] / 4; });
        chances.push(ahead);
      }
      sums = [chances[0]];
      for (let t = 1; t < chances.length; t++) sums.push(sums[t - 1].map((entry, s) => entry + gamma ** t * chances[t][s]));
      whole = kernel.successors(desk.world, gamma)(start());
    }

    function paint() {
      const { theme } = desk, t = Math.max(0, Math.min(STOPS.at(-1), get("step"))), s = start(), gamma = get("gamma"), top = Math.max(...whole), dots = [s];
      desk.map(ofStep, stage.glow(chances[t], theme, 1, DECADES), { dots });
      desk.map(ofSum, stage.glow(sums[t], theme, top, DECADES), { dots });
      desk.map(ofWhole, stage.glow(whole, theme, top, DECADES), { dots });
      const far = desk.hover ?? whole.reduce((best, entry, i) => (entry < whole[best] ? i : best), 0), share = (k) => Math.min(1, sums[k][far] / whole[far]), all = (k) => 1 - gamma ** (k + 1);
      const chart = desk.chart(ofShare, { from: 0, to: STOPS.at(-1), ticks: [0, 50, 100, 150], label: "t" }, { from: 0, to: 1, ticks: [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]] });
      chart.line(STOPS.map((k) => [k, all(k)]), theme.grey);
      chart.line(STOPS.map((k) => [k, share(k)]), theme.sr);
      chart.dots([[t, all(t)]], theme.grey, 5);
      chart.dots([[t, share(t)]], theme.sr, 5);
      chart.words("all tiles", [70, Math.max(0.12, all(70) - 0.1)], theme.grey);
      const reached = chances[t].filter((chance) => chance > 0).length, which = desk.hover === null ? "the farthest tile" : desk.place(far);
      ofStep.say(`after ${t} step${t === 1 ? "" : "s"}: Tᵗ`, `Where the walk from ${desk.place(s)} may be after ${t} steps: ${reached} tiles. Arrow keys choose another start.`);
      ofSum.say(`terms up to t = ${t}`, `The sum up to ${t}: ${(100 * all(t)).toFixed(0)} % of all visits.`);
      ofWhole.say("all terms: a row of Ψ", `The row of Ψ at ${desk.place(s)}.`);
      ofShare.say("share of the visits counted", `Share counted so far: ${(100 * all(t)).toFixed(1)} % of all, ${(100 * share(t)).toFixed(1)} % of those to ${which}.`);
      desk.say(`Counted up to t = ${t}: ${(100 * all(t)).toFixed(1)} % of all visits, ${(100 * share(t)).toFixed(1)} % of those to ${which} (blue), where Ψ is ${whole[far].toPrecision(3)}.`);
      return { step: t, state: s, gamma, chance: [...chances[t]], sum: [...sums[t]], whole: [...whole] };
    }
    return desk.start({ text: walk, gamma: walk, state: walk, step: () => {} }, paint);
  }
  return { render };
})();
