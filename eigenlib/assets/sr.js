// Ψ̂ by TD under the reader's hands (notebook 03, `explore_sr`): a row of it, a learned eigenvector beside the exact one, and the
// error so far. Learning goes on in slices between frames, so that every move shows at once, however long the run.
// A classic script after kernel.js and stage.js.

const srExplorer = (() => {
  const { make, subscript } = stage;
  const RATES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], SLICE = 8; // ms of learning between two frames
  const TENS = [35, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400];
  const STOPS = [...kernel.range(31).slice(1), ...TENS, ...TENS.filter((ten) => ten >= 50).map((ten) => 10 * ten), 5000]; // about evenly in log
  const nearest = (list, value) => list.reduce((best, one, k) => (Math.abs(one - value) < Math.abs(list[best] - value) ? k : best), 0);
  const STYLE = `
  .eigenlib-sr .row { gap: .5rem 1.4rem; } .eigenlib-sr .wide input { width: min(15rem, 48cqw); } .eigenlib-sr .choice { display: flex; gap: .3rem; align-items: center; }
  .eigenlib-sr .pick { cursor: pointer; }`;

  function render({ model, el }) {
    const box = stage.box(el, "eigenlib-sr", STYLE), row = make("div", { className: "row" }, box);
    const set = (values) => { for (const name in values) model.set(name, values[name]); model.save_changes(); };
    const slide = (text, max, input, className = "") => {
      const label = make("label", { textContent: text, className }, row), slider = make("input", { type: "range", min: 0, max, step: 1 }, label), shown = make("output", {}, label);
      slider.addEventListener("input", () => { playing = false; input(Number(slider.value)); });
      return { slider, shown };
    };
    const play = make("button", { type: "button", className: "main", textContent: "Play", click: () => {
      playing = !playing;
      if (playing && model.get("episodes") >= 5000) set({ episodes: 1 });
      since = performance.now();
      wake();
    } }, row);
    const episodes = slide("episodes", STOPS.length - 1, (k) => set({ episodes: STOPS[k] }), "wide");
    const gamma = slide("γ", 99, (k) => set({ gamma: k / 100 }), "wide");
    const rate = slide("step size η", RATES.length - 1, (k) => set({ step_size: RATES[k] }));
    const choice = make("div", { className: "choice", role: "group", "aria-label": "Where episodes start" }, row);
    make("span", { textContent: "start" }, choice);
    const starts = ["fixed", "random"].map((start) => make("button", { type: "button", textContent: start, click: () => set({ start }) }, choice));
    const vector = slide("eigenvector", 10, (k) => set({ vector: k }));
    make("button", { type: "button", textContent: "Another walk", click: () => set({ seed: model.get("seed") + 1 }) }, row);
    const panels = make("div", { className: "panels" }, box);
    const [ofRow, ofLearned, ofExact, ofError] = kernel.range(4).map(() => {
      const figure = make("figure", {}, panels);
      return { title: make("figcaption", {}, figure), canvas: make("canvas", { role: "img" }, figure) };
    });
    ofRow.canvas.className = "pick";
    ofRow.canvas.tabIndex = 0;
    ofRow.canvas.setAttribute("role", "application");
    ofRow.canvas.setAttribute("aria-label", "Map. Arrow keys choose the tile whose row is shown.");
    const said = make("p", { className: "said", role: "status" }, box);

    let world, theme = stage.dress(box), exact, psi, purposes, run = null, playing = false, since = 0, frame = 0, hover = null, found = null;

    function rebuild() {
      try {
        world = kernel.parse(model.get("text"));
        if (!kernel.connected(world)) throw new Error("The map falls into parts that no path connects.");
      } catch (problem) { said.textContent = problem.message; return; }
      restart();
    }
    const state = () => Math.max(0, Math.min(world.n - 1, model.get("state")));
    const index = () => Math.max(0, Math.min(world.n - 1, 10, model.get("vector")));

    // Another world, discount, step size, start or seed: Ψ̂ begins at zero.
    function restart() {
      const discount = Math.max(0, Math.min(0.999, model.get("gamma")));
      if (exact?.of !== world || exact.gamma !== discount) {
        psi = kernel.range(world.n).map(kernel.successors(world, discount));
        purposes = world.doors ? kernel.generalEigenpurposes(psi, 15) : kernel.eigenpurposes(world, Math.min(world.n, 15)).map(({ value, vector }) => ({ vector, value: 1 / (1 - discount * value) }));
        exact = { of: world, gamma: discount };
      }
      run = {
        psi: kernel.range(world.n).map(() => new Float64Array(world.n)), done: 0, errors: [],
        how: { gamma: discount, stepSize: model.get("step_size"), start: model.get("start") === "fixed" ? 0 : -1, random: kernel.generator(Math.max(0, model.get("seed"))) },
      };
      move();
    }
    // More episodes or fewer: Ψ̂ goes on learning, or begins again.
    function move() {
      if (!run) return;
      if (model.get("episodes") < run.done) { restart(); return; }
      found = null;
      wake();
    }

    function learn() {
      const target = model.get("episodes"), begin = performance.now();
      while (run.done < target && performance.now() - begin < SLICE) {
        const stop = Math.min(target, STOPS.find((one) => one > run.done) ?? target);
        kernel.learnSuccessors(world, run.psi, Math.min(25, stop - run.done), run.how);
        run.done = Math.min(stop, run.done + 25);
        if (run.done === stop) run.errors.push([stop, kernel.relativeError(run.psi, psi)]);
      }
      return run.done === target;
    }

    // The learned eigenvector, its sign turned as the exact one's, and how far it lies in the exact eigenspace of its rank.
    function compare() {
      const k = index(), learned = kernel.generalEigenpurposes(run.psi, k + 1)[k].vector;
      let low = k, high = k, inside = 0, near = 0;
      while (low > 0 && Math.abs(purposes[low - 1].value - purposes[low].value) <= 1e-8) low--;
      while (high + 1 < purposes.length && Math.abs(purposes[high + 1].value - purposes[high].value) <= 1e-8) high++;
      for (const one of kernel.orthonormal(purposes.slice(low, high + 1).map((pair) => pair.vector))) inside += kernel.dot(one, learned) ** 2;
      near = kernel.dot(learned, purposes[k].vector);
      found = { learned: near < 0 ? learned.map((entry) => -entry) : learned, score: Math.min(1, Math.sqrt(inside)) };
    }

    function paint(now) {
      frame = 0;
      if (!run || !el.isConnected) return;
      if (playing && now - since > 150) {
        since = now;
        const next = STOPS[nearest(STOPS, model.get("episodes")) + 1];
        if (next) set({ episodes: next }); else playing = false;
      }
      const before = run.done, done = learn() && run.done === before; // eigenvectors wait for a frame without learning
      if (done && !found) compare();
      controls();
      const width = Math.max(160, ofRow.canvas.parentElement.clientWidth), s = state(), here = run.psi[s];
      const glow = (value) => stage.tint(theme.glow, 1 + Math.log10(Math.max(value, 1e-9) / 3) / 4); // four decades below 3, as in the figures
      const maps = [
        [ofRow, stage.map(ofRow.canvas, world, theme, width, (t) => glow(here[t]))],
        [ofLearned, stage.map(ofLearned.canvas, world, theme, width, stage.signed(found?.learned ?? new Float64Array(world.n), theme))],
        [ofExact, stage.map(ofExact.canvas, world, theme, width, stage.signed(purposes[index()].vector, theme))],
      ];
      stage.ring(maps[0][1], world.cells[s], theme, true);
      for (const [, one] of hover === null ? [] : maps) stage.ring(one, world.cells[hover], theme);
      curve(width);
      told(s, done);
      if (!done || playing) wake();
    }
    const wake = () => { frame ||= requestAnimationFrame(paint); };

    function controls() {
      const many = model.get("episodes"), discount = model.get("gamma"), eta = model.get("step_size");
      play.textContent = playing ? "Pause" : "Play";
      episodes.slider.value = nearest(STOPS, many);
      episodes.shown.textContent = run.done < many ? `${run.done.toLocaleString("en")} of ${many.toLocaleString("en")}` : many.toLocaleString("en");
      gamma.slider.value = Math.round(100 * discount);
      gamma.shown.textContent = discount.toFixed(3).replace(/0$/, "");
      rate.slider.value = nearest(RATES, eta);
      rate.shown.textContent = eta;
      starts.forEach((one) => one.setAttribute("aria-pressed", String(one.textContent === model.get("start"))));
      vector.slider.max = Math.min(10, world.n - 1);
      vector.slider.value = index();
      vector.shown.textContent = `e${subscript(index())}`;
      for (const [one, text] of [[episodes, `${many} episodes`], [gamma, `γ ${discount}`], [rate, `step size ${eta}`], [vector, `eigenvector ${index()}`]]) one.slider.setAttribute("aria-valuetext", text);
    }

    // In words what the panels show; for tests in numbers too.
    function told(s, done) {
      const [r, c] = world.cells[s], name = `e${subscript(index())}`, error = run.errors.at(-1)?.[1] ?? 1;
      ofRow.title.textContent = `row of Ψ̂ at the dot (click another tile)`;
      ofLearned.title.textContent = found ? `learned ${name}, alignment ${found.score.toFixed(2)}` : `learned ${name} …`;
      ofExact.title.textContent = `exact ${name}`;
      ofError.title.textContent = `error of Ψ̂: ${(100 * error).toFixed(1)} %`;
      ofLearned.canvas.setAttribute("aria-label", `Learned eigenvector ${index()}${found ? `, alignment ${found.score.toFixed(2)}` : ""}.`);
      ofExact.canvas.setAttribute("aria-label", `Exact eigenvector ${index()}.`);
      ofError.canvas.setAttribute("aria-label", `Error against episodes: ${(100 * error).toFixed(1)} % after ${run.done}.`);
      ofRow.canvas.setAttribute("aria-label", `Row of the learned SR at row ${r + 1}, column ${c + 1}. Arrow keys choose another tile.`);
      if (hover === null) said.textContent = "";
      else {
        const [y, x] = world.cells[hover];
        said.textContent = `Row ${y + 1}, column ${x + 1}: Ψ̂ ${run.psi[s][hover].toFixed(3)}, exact ${psi[s][hover].toFixed(3)}; ${name} learned ${(found?.learned[hover] ?? 0).toFixed(3)}, exact ${purposes[index()].vector[hover].toFixed(3)}.`;
      }
      el.eigenlib = { done, text: world.text, episodes: run.done, errors: run.errors, row: [...run.psi[s]], state: s, learned: found && [...found.learned], score: found?.score, vector: index(), gamma: model.get("gamma") };
    }

    // Both axes logarithmic: 1 to 5,000 episodes, 2 % to 250 %.
    function curve(width) {
      const tall = Math.min(260, width * 0.8), brush = stage.brushFor(ofError.canvas, width, tall), left = 48, low = tall - 34;
      const x = (many) => left + (Math.log(many) / Math.log(6000)) * (width - left - 10), y = (error) => low - (Math.log(Math.max(0.02, error) / 0.02) / Math.log(125)) * (low - 8);
      brush.strokeStyle = brush.fillStyle = theme.ink;
      brush.font = "13px system-ui, sans-serif";
      brush.lineWidth = 1;
      brush.globalAlpha = 0.85;
      brush.beginPath();
      brush.moveTo(left, 4);
      brush.lineTo(left, low);
      brush.lineTo(width - 4, low);
      brush.stroke();
      brush.textAlign = "center";
      for (const many of [1, 10, 100, 1000]) brush.fillText(many.toLocaleString("en"), x(many), low + 16);
      brush.fillText("episodes", (left + width) / 2, low + 31);
      brush.textAlign = "right";
      for (const error of [0.03, 0.1, 0.3, 1]) brush.fillText(`${100 * error} %`, left - 6, y(error) + 4);
      brush.globalAlpha = 1;
      brush.strokeStyle = brush.fillStyle = theme.accent;
      brush.lineWidth = 2.5;
      brush.beginPath();
      for (const [many, error] of run.errors) brush.lineTo(x(many), y(error));
      brush.stroke();
      if (!run.errors.length) return;
      brush.beginPath();
      brush.arc(x(run.errors.at(-1)[0]), y(run.errors.at(-1)[1]), 5, 0, 2 * Math.PI);
      brush.fill();
    }

    const tileAt = (event) => {
      const canvas = event.currentTarget, area = canvas.getBoundingClientRect(), v = stage.view(world, area.width, 460, 0, 1);
      const cell = v.pick(event.clientX - area.left, event.clientY - area.top, () => 0), s = cell ? world.at[cell[0]][cell[1]] : -1;
      return s < 0 ? null : s;
    };
    ofRow.canvas.addEventListener("click", (event) => { const s = tileAt(event); if (s !== null) set({ state: s }); });
    ofRow.canvas.addEventListener("keydown", (event) => {
      const way = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
      if (way < 0) return;
      event.preventDefault();
      set({ state: world.next[4 * state() + way] });
    });
    for (const { canvas } of [ofRow, ofLearned, ofExact]) {
      canvas.addEventListener("pointermove", (event) => { hover = tileAt(event); wake(); });
      canvas.addEventListener("pointerleave", () => { hover = null; wake(); });
    }
    const change = (name, then) => { model.on(`change:${name}`, then); return () => model.off(`change:${name}`, then); };
    const ends = [change("text", rebuild), ...["gamma", "step_size", "start", "seed"].map((name) => change(name, restart)), change("episodes", move),
      change("vector", () => { found = null; wake(); }), change("state", wake), stage.watchTheme(() => { theme = stage.dress(box); wake(); })];
    const sized = new ResizeObserver(wake);
    sized.observe(panels);
    rebuild();
    return () => { for (const end of ends) end(); sized.disconnect(); cancelAnimationFrame(frame); };
  }
  return { render };
})();
