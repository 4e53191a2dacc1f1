// The spectra of 𝓛 and Ψ, and what noise does to the eigenvectors (notebook 02, `explore_spectra`). γ moves no eigenvector of the
// exact Ψ, only its eigenvalues; but where these crowd, the slightest noise mixes their vectors.

const explorer = (() => {
  const NOISES = [0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], MANY = 450; // shares of ‖Ψ‖; tiles up to which noise is added
  const percent = (share) => `${+(100 * share).toPrecision(2)} %`;

  function render(given) {
    const desk = stage.desk(given, "spectra"), { get, set } = desk;
    const last = () => Math.min(10, desk.world.n - 1), index = () => Math.max(0, Math.min(last(), get("vector"))), name = () => `e${stage.subscript(index())}`;
    desk.play("gamma", stage.GAMMAS, 120);
    desk.slide("γ", "gamma", stage.GAMMAS, { wide: true, show: stage.short });
    desk.slide("noise", "noise", NOISES, { show: percent });
    desk.slide("eigenvector", "vector", () => kernel.range(last() + 1), { show: name });
    desk.button("Other noise", () => set({ seed: get("seed") + 1 }));
    desk.mazes();
    const ofValues = desk.panel(), ofScores = desk.panel(), ofExact = desk.panel({ tiles: true }), ofNoisy = desk.panel({ tiles: true });
    let exact, shakes, noisy, scores;

    function solve() {
      if (desk.world.doors) throw new Error("One-way doors make T unsymmetric: there the two spectra are not one.");
      exact = kernel.eigenpurposes(desk.world, desk.world.n <= MANY ? desk.world.n : 11);
      draw();
    }
    // A symmetric matrix of random numbers, its Frobenius norm 1: the same for every γ and every size of noise.
    function draw() {
      const { n } = desk.world, random = kernel.generator(Math.max(0, get("seed")));
      shakes = n > MANY ? null : kernel.range(n).map(() => new Float64Array(n));
      for (let s = 0, all = 0; shakes && s < n; s++) {
        for (let t = 0; t <= s; t++) { shakes[s][t] = shakes[t][s] = random() - random(); all += (s === t ? 1 : 2) * shakes[s][t] ** 2; }
        if (s === n - 1) for (const row of shakes) for (let t = 0; t < n; t++) row[t] /= Math.sqrt(all) || 1;
      }
      shake();
    }
    // Ψ with its noise, in the basis of the exact eigenvectors a diagonal matrix with noise: its leading eigenvectors.
    function shake() {
      const gamma = get("gamma"), values = exact.map(({ value }) => 1 / (1 - gamma * value)), size = get("noise") * Math.hypot(...values);
      if (!shakes) { noisy = scores = null; return; }
      const matrix = shakes.map((row, s) => row.map((entry, t) => size * entry + (s === t ? values[s] : 0)));
      const { values: found, vectors } = kernel.symmetricEigenpairs(matrix), order = kernel.range(found.length).sort((i, j) => found[j] - found[i]);
      const back = (k) => { const x = new Float64Array(exact.length); vectors[k].forEach((share, i) => exact[i].vector.forEach((entry, s) => { x[s] += share * entry; })); return x; };
      noisy = order.slice(0, last() + 1).map(back);
      scores = noisy.map((vector, k) => kernel.alignment(vector, exact, k));
    }

    function paint() {
      const { theme } = desk, gamma = get("gamma"), k = index(), top = 1 / (1 - gamma), at = (x) => 1 / (1 - gamma * (1 - x));
      const values = exact.map(({ value }) => [1 - value, at(1 - value)]), gap = values.length > 4 ? (values[3][1] - values[4][1]) / values[0][1] : null;
      const chart = desk.chart(ofValues, { from: 0, to: 2, ticks: [0, 0.5, 1, 1.5, 2], label: "eigenvalue of 𝓛 (small = smooth)" }, { from: 0.4, to: 1000, log: true, ticks: [0.5, 1, 2, 5, 10, 50, 200, 1000] });
      chart.line(kernel.range(101).map((x) => [x / 50, at(x / 50)]), theme.grey, 1.5);
      chart.dots(values, theme.sr, 3);
      chart.dots([values[k]], theme.pvf, 6);
      const marks = desk.chart(ofScores, { from: 0, to: Math.max(1, last()), ticks: kernel.range(last() + 1).filter((i) => i % 2 === 0 || last() < 4), label: "eigenvector" }, { from: 0, to: 1, ticks: [0, 0.5, 1] });
      if (scores) { marks.line(scores.map((score, i) => [i, score]), theme.td); marks.dots(scores.map((score, i) => [i, score]), theme.td, 3.5); marks.dots([[k, scores[k]]], theme.pvf, 6); }
      const like = noisy && kernel.dot(noisy[k], exact[k].vector) < 0 ? -1 : 1, shown = noisy ? noisy[k].map((entry) => like * entry) : new Float64Array(desk.world.n);
      desk.map(ofExact, stage.signed(exact[k].vector, theme));
      desk.map(ofNoisy, stage.signed(shown, theme));
      ofValues.say(`eigenvalues of Ψ, 1 to ${+top.toPrecision(3)}`, `Eigenvalues of the SR against those of the Laplacian at γ ${gamma}; the largest is ${top.toPrecision(3)}.`);
      ofScores.say("alignment with the exact ones", scores ? `Alignment of the noisy eigenvectors: ${scores.map((score) => score.toFixed(2)).join(", ")}.` : "No noise on maps of this size.");
      ofExact.say(`${name()} of Ψ, at every γ`);
      ofNoisy.say(scores ? `${name()} of Ψ + ${percent(get("noise"))} noise: ${scores[k].toFixed(2)}` : `noise is added up to ${MANY} tiles`);
      desk.say(`Horizon ${+top.toPrecision(3)} steps.${gap === null ? "" : ` From the fourth to the fifth eigenvalue: ${gap.toFixed(3)} of the largest.`}`);
      return { gamma, vector: k, values: values.map(([, value]) => value), gap, scores, noisy: [...shown] };
    }
    return desk.start({ text: solve, gamma: shake, noise: shake, seed: draw, vector: () => {} }, paint);
  }
  return { render };
})();
