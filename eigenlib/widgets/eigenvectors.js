// Any eigenvector of any map (notebook 04, `explore_eigenvectors`): from above, as a landscape, as an option, and its eigenvalue
// among the others.

const explorer = (() => {
  const MINE = "my maze", WHOLE = 200, MANY = 450, FEW = 24; // up to so many tiles at once, in a second step, never: the first few

  function render(given) {
    const desk = stage.desk(given, "eigenvectors"), { get, set } = desk;
    const maps = () => Object.keys(get("maps")), chosen = () => maps().find((name) => get("maps")[name] === get("text")) ?? MINE;
    const index = () => Math.max(0, Math.min(get("index"), known.length - 1)), name = (k, sign) => `${sign < 0 ? "−" : ""}e${stage.subscript(k)}`;
    desk.list("map", () => (stage.kept() || chosen() === MINE ? [...maps(), MINE] : maps()), chosen, (name) => set({ text: get("maps")[name] ?? stage.kept() ?? get("text") }));
    desk.play("index", () => kernel.range(known.length), 700);
    desk.slide("eigenvector", "index", () => kernel.range(known.length), { wide: true, show: () => `e${stage.subscript(index())}` });
    desk.choose("sign", "sign", [[1, "+"], [-1, "−"]]);
    desk.slide("γ", "gamma", stage.GAMMAS, { show: stage.short });
    const panels = kernel.range(3).map(() => desk.panel({ tiles: true })), ofValues = desk.panel();
    let known, whole, vector, policy;

    function solve() {
      const { world, world: { n, doors } } = desk;
      whole = n <= WHOLE || n > MANY || doors;
      known = doors ? kernel.successorPurposes(world, get("gamma"), Math.min(n, FEW)) : kernel.eigenpurposes(world, n <= WHOLE ? n : FEW);
      if (!whole) desk.later(() => { known = kernel.eigenpurposes(world); whole = true; steer(); });
      steer();
    }
    function steer() {
      vector = known[index()].vector.map((entry) => (get("sign") < 0 ? -entry : entry));
      policy = kernel.eigenoption(desk.world, vector, get("gamma"));
    }
    // γ moves the eigenvalues and the option, and only where doors are the vectors too.
    const discount = () => (desk.world.doors ? solve() : steer());

    function paint() {
      const { world, theme } = desk, k = index(), gamma = get("gamma"), values = known.map(({ value }) => (world.doors ? value : 1 / (1 - gamma * value)));
      const colour = stage.signed(vector, theme), pale = stage.signed(vector, theme, 2.4), ends = policy.filter((action) => action < 0).length;
      desk.map(panels[0], colour);
      desk.map(panels[1], colour, { vector });
      desk.map(panels[2], pale, { policy });
      const least = Math.min(0.9, ...values), most = Math.max(...values, 1.2), last = Math.max(1, known.length - 1);
      const spectrum = desk.chart(ofValues, { from: 0, to: last, ticks: [0, Math.round(last / 2), last], label: "index" },
        { from: least, to: most, log: true, ticks: [0.5, 1, 2, 5, 10, 50, 200, 1000].filter((tick) => tick >= least && tick <= most) });
      spectrum.dots(values.map((value, i) => [i, value]), theme.grey);
      spectrum.dots([[k, values[k]]], theme.accent, 6);
      const tiles = ends === 1 ? "1 tile" : `${ends} tiles`, option = ends === world.n ? "no option: it ends everywhere" : `its option ends in ${tiles}`;
      panels[0].say(name(k, get("sign")), `Eigenvector ${k} from above.`);
      panels[1].say("as a landscape", `Eigenvector ${k} as a landscape.`);
      panels[2].say(option, `The option of eigenvector ${k}: ${option}.`);
      ofValues.say(whole ? `eigenvalues of Ψ: ${values[k].toFixed(2)}` : "eigenvalues of Ψ … the others follow", `Eigenvalue ${k}: ${values[k].toFixed(3)}.`);
      const s = desk.hover;
      desk.say(s === null ? "" : `${desk.Place(s)}: ${vector[s].toFixed(3)}. ${policy[s] < 0 ? "The option ends here." : `The option goes ${["up", "right", "down", "left"][policy[s]]}.`}`);
      return { done: whole, index: k, gamma, values: known.map((pair) => pair.value), vector: [...vector], policy };
    }
    return desk.start({ text: solve, index: steer, sign: steer, gamma: discount, maps: () => {} }, paint);
  }
  return { render };
})();
