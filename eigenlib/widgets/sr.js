// Ψ̂ by TD under the reader's hands (notebook 03, `explore_sr`): a row of it, a learned eigenvector beside the exact one, and the
// error so far. Learning goes on in slices between frames, so that every move shows at once, however long the run.

const explorer = (() => {
  const RATES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], SLICE = 8; // ms of learning between two frames
  const TENS = [35, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400];
  const STOPS = [...kernel.range(31).slice(1), ...TENS, ...TENS.filter((ten) => ten >= 50).map((ten) => 10 * ten), 5000]; // about evenly in log

  function render(given) {
    const desk = stage.desk(given, "sr"), { get, set } = desk, last = () => Math.min(10, desk.world.n - 1);
    const name = () => `e${stage.subscript(index())}`, many = (number) => number.toLocaleString("en");
    desk.play("episodes", STOPS, 150);
    desk.slide("episodes", "episodes", STOPS, { wide: true, show: (all) => (run.done < all ? `${many(run.done)} of ${many(all)}` : many(all)) });
    desk.slide("γ", "gamma", stage.GAMMAS, { wide: true, show: stage.short });
    desk.slide("step size η", "step_size", RATES);
    desk.choose("start", "start", ["fixed", "random"]);
    desk.slide("eigenvector", "vector", () => kernel.range(last() + 1), { show: () => name() });
    desk.button("Another walk", () => set({ seed: get("seed") + 1 }));
    desk.mazes();
    const state = () => Math.max(0, Math.min(desk.world.n - 1, get("state"))), index = () => Math.max(0, Math.min(last(), get("vector")));
    const ofRow = desk.panel({ tiles: true, pick: (s) => set({ state: s }), at: state }), ofLearned = desk.panel({ tiles: true });
    const ofExact = desk.panel({ tiles: true }), ofError = desk.panel();
    let psi, purposes, exact = null, run = null, found = null;

    // Another world, discount, step size, start or seed: Ψ̂ begins at zero.
    function restart() {
      const { world } = desk, gamma = get("gamma");
      if (exact?.world !== world || exact.gamma !== gamma) {
        psi = kernel.range(world.n).map(kernel.successors(world, gamma));
        purposes = kernel.successorPurposes(world, gamma, Math.min(world.n, 15));
        exact = { world, gamma };
      }
      run = {
        psi: kernel.range(world.n).map(() => new Float64Array(world.n)), done: 0, errors: [],
        how: { gamma, stepSize: get("step_size"), start: get("start") === "fixed" ? 0 : -1, random: kernel.generator(Math.max(0, get("seed"))) },
      };
      found = null;
    }
    // More episodes or fewer: Ψ̂ goes on learning, or begins again.
    function move() { if (get("episodes") < run.done) restart(); else found = null; }

    function learn() {
      const target = get("episodes"), begin = performance.now();
      while (run.done < target && performance.now() - begin < SLICE) {
        const stop = Math.min(target, STOPS.find((one) => one > run.done) ?? target);
        kernel.learnSuccessors(desk.world, run.psi, Math.min(25, stop - run.done), run.how);
        run.done = Math.min(stop, run.done + 25);
        if (run.done === stop) run.errors.push([stop, kernel.relativeError(run.psi, psi)]);
      }
      return run.done === target;
    }

    // The learned eigenvector, its sign turned as the exact one's, and how far it lies in the exact eigenspace of its rank.
    function compare() {
      const k = index(), learned = kernel.generalEigenpurposes(run.psi, k + 1)[k].vector, like = kernel.dot(learned, purposes[k].vector) < 0 ? -1 : 1;
      found = { learned: learned.map((entry) => like * entry), score: kernel.alignment(learned, purposes, k) };
    }

    function paint() {
      const before = run.done, done = learn() && run.done === before; // eigenvectors wait for a frame without learning
      if (done && !found) compare();
      const s = state(), here = run.psi[s], error = run.errors.at(-1)?.[1] ?? 1, percent = `${(100 * error).toFixed(1)} %`, vector = purposes[index()].vector;
      desk.map(ofRow, stage.glow(here, desk.theme, 3), { dots: [s] });
      desk.map(ofLearned, stage.signed(found?.learned ?? new Float64Array(desk.world.n), desk.theme));
      desk.map(ofExact, stage.signed(vector, desk.theme));
      const curve = desk.chart(ofError, { from: 1, to: 6000, log: true, ticks: [1, 10, 100, 1000], label: "episodes" },
        { from: 0.02, to: 2.5, log: true, ticks: [[0.03, "3 %"], [0.1, "10 %"], [0.3, "30 %"], [1, "100 %"]] });
      curve.line(run.errors, desk.theme.td);
      curve.dots(run.errors.slice(-1), desk.theme.td, 5);
      ofRow.say("row of Ψ̂ at the dot (click another tile)", `Row of the learned SR at ${desk.place(s)}. Arrow keys choose another tile.`);
      ofLearned.say(found ? `learned ${name()}, alignment ${found.score.toFixed(2)}` : `learned ${name()} …`);
      ofExact.say(`exact ${name()}`);
      ofError.say(`error of Ψ̂: ${percent}`, `Error against episodes: ${percent} after ${run.done}.`);
      const t = desk.hover;
      desk.say(t === null ? "" : `${desk.Place(t)}: Ψ̂ ${here[t].toFixed(3)}, exact ${psi[s][t].toFixed(3)}; ${name()} learned ${(found?.learned[t] ?? 0).toFixed(3)}, exact ${vector[t].toFixed(3)}.`);
      return { more: !done, episodes: run.done, errors: run.errors, row: [...here], state: s, learned: found && [...found.learned], score: found?.score, vector: index(), gamma: get("gamma") };
    }
    return desk.start({ text: restart, gamma: restart, step_size: restart, start: restart, seed: restart, episodes: move, vector: () => { found = null; }, state: () => {} }, paint);
  }
  return { render };
})();
