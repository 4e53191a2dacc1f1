// What stored networks found in the four rooms (notebook 08, `explore_deep_sr`), as small tables: exact directions above, the
// network's potentials below.

const explorer = {
  render(given) {
    const desk = stage.desk(given, "deep"), { get } = desk, runs = get("runs"), all = (name) => [...new Set(runs.map((run) => run[name]))], sub = stage.subscript;
    desk.slide("γ", "gamma", all("gamma"), { wide: true });
    desk.choose("width", "width", all("width"));
    desk.choose("potential", "potential", all("potential"));
    const exact = get("exact"), panels = kernel.range(2 * exact.length).map(() => desk.panel({ tiles: true }));
    return desk.start({ gamma: () => {}, width: () => {}, potential: () => {} }, () => {
      const names = ["gamma", "width", "potential"], run = runs.find((one) => names.every((name) => one[name] === get(name))) ?? runs[0], both = [...exact, ...run.vectors];
      both.forEach((vector, k) => {
        const here = k < exact.length, name = here ? `exact e${sub(k + 1)}` : `${run.potential}, e${sub(k - exact.length + 1)} of the network`;
        desk.map(panels[k], stage.signed(vector, desk.theme));
        panels[k].say(name);
      });
      const s = desk.hover, entries = (vectors) => vectors.map((vector) => (vector[s] / 1000).toFixed(2)).join(", ");
      desk.say(s === null ? `Error of ψ ${run.error.toFixed(2)}; canonical correlation of ${run.potential} with the exact directions ${run.score.toFixed(2)}.` : `${desk.Place(s)}: exact ${entries(exact)}; network ${entries(run.vectors)}.`);
      return { gamma: run.gamma, width: run.width, potential: run.potential, error: run.error, score: run.score };
    });
  },
};
