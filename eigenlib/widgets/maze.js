// The living maze: walkers wander, their memory glows, a direction rises, an option follows it, an agent runs; then the reader
// draws walls and everything follows. Hero of the report's first page and `MazeEditor` of the notebooks: see eigenlib/widgets.
// A classic script after kernel.js and stage.js.

const explorer = (() => {
  const { make, subscript } = stage;
  const STEPS = [
    { name: "Wander", lasts: 4200, says: "Sixty walkers leave one tile. Every step is drawn by chance." },
    { name: "Remember", lasts: 2600, says: "How often they will be where, soon counting more than late: one row of Ψ, the successor representation." },
    { name: "Find a direction", lasts: 3000, says: "An eigenvector of Ψ turns the maze into a landscape." },
    { name: "Make it a skill", lasts: 2600, says: "The option climbs that landscape as far as it goes. Discs are where it ends." },
    { name: "Use it", lasts: Infinity, says: "" },
  ];
  const WALKERS = 60, STRIDE = 150, PACE = 95; // ms a step of walkers, of the agent
  const STYLE = `
  .eigenlib-maze .both { display: grid; gap: 1rem 2rem; align-items: start; }
  .eigenlib-maze .ground { position: relative; touch-action: none; cursor: crosshair; }
  .eigenlib-maze .invite { position: absolute; inset: .6rem 0 auto; margin: 0 auto; width: fit-content; padding: .3rem .9rem; border-radius: 2rem; font-weight: 650;
    background: #ffd23f; color: #1f2430; pointer-events: none; box-shadow: 0 2px 10px rgba(0, 0, 0, .3); transition: opacity .4s; }
  .eigenlib-maze .invite[hidden] { display: block; opacity: 0; }
  .eigenlib-maze ol { list-style: none; margin: 0; padding: 0; }
  .eigenlib-maze ol button { display: grid; grid-template-columns: 1.5rem 1fr; width: 100%; text-align: left; padding: .22rem .5rem; border: 0; border-left: .25rem solid transparent; border-radius: 0 .4rem .4rem 0; }
  .eigenlib-maze ol b { font-weight: 600; } .eigenlib-maze ol small { display: none; grid-column: 2; font-size: 14px; line-height: 1.4; min-height: 2.8em; }
  .eigenlib-maze ol button[aria-current] { border-left-color: var(--accent); background: color-mix(in srgb, currentColor 7%, transparent); }
  .eigenlib-maze ol button[aria-current] small { display: block; }
  .eigenlib-maze .strip { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: .35rem; margin: .9rem 0 .7rem; }
  .eigenlib-maze .strip button { padding: .2rem; display: block; line-height: 1.25; font-size: 13px; text-align: center; }
  .eigenlib-maze .strip button[aria-pressed="true"] { outline: 3px solid var(--accent); outline-offset: 0; }
  @container (min-width: 700px) { .eigenlib-maze .both { grid-template-columns: minmax(0, 1.12fr) minmax(19rem, 1fr); } .eigenlib-maze .strip { grid-template-columns: repeat(4, minmax(0, 1fr)); max-width: 24rem; } }
  @container (max-width: 480px) { .eigenlib-maze .strip { grid-template-columns: repeat(4, minmax(0, 1fr)); } }`;
  const count = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;

  function render({ model, el }) {
    // --- what stands there --------------------------------------------------------------------------------------------------
    const box = stage.box(el, "eigenlib-maze", STYLE);
    const both = make("div", { className: "both" }, box), left = make("div", {}, both), right = make("div", {}, both);
    const ground = make("div", { className: "ground" }, left), number = `eigenlib-${Math.random().toString(36).slice(2)}`;
    const canvas = make("canvas", { tabIndex: 0, role: "application", "aria-describedby": number,
      "aria-label": "Maze. Arrow keys move, the space bar adds or removes a wall." }, ground);
    const invite = make("div", { className: "invite", textContent: "Now draw a wall", hidden: true, "aria-hidden": "true" }, ground);
    const said = make("p", { className: "said eigenlib-maze-message", role: "status" }, left);
    make("p", { className: "unseen", id: number }, left);
    const list = make("ol", { "aria-label": "How a direction becomes a skill" }, right);
    const steps = STEPS.map(({ name, says }, k) => {
      const button = make("button", { type: "button", click: () => go(k) }, make("li", {}, list));
      make("span", { textContent: k + 1 }, button);
      make("b", { textContent: name }, button);
      make("small", { textContent: says }, button);
      return button;
    });
    const strip = make("div", { className: "strip", role: "group", "aria-label": "Directions" }, right);
    const thumbs = kernel.range(8).map((k) => {
      const button = make("button", { type: "button", click: () => { set({ index: k + 1 }); if (step < 2) go(4); } }, strip);
      make("canvas", { "aria-hidden": "true" }, button);
      make("span", { textContent: `e${subscript(k + 1)}` }, button);
      return button;
    });
    const row = make("div", { className: "row" }, right);
    const button = (textContent, click, parent = row) => make("button", { type: "button", textContent, click }, parent);
    const pause = button("Pause", () => { playing = !playing; if (playing) wake(); else dress(); });
    button("Flip sign", () => set({ sign: -model.get("sign") }));
    const lie = button("Flat", () => set({ flat: !model.get("flat") }));
    const discount = make("label", { textContent: "γ" }, row);
    const slider = make("input", { type: "range", min: 0, max: 0.999, step: "any", "aria-label": "Discount γ", input: () => set({ gamma: Math.round(slider.value * 1000) / 1000 }) }, discount);
    const shown = make("output", {}, discount);
    const more = make("div", { className: "row", style: "margin-top: .5rem" }, right);
    const share = model.get("share") ? button("Share this maze", shareIt, more) : null;
    if (share) share.className = "main";
    const mine = button("My maze", () => set({ text: stage.kept() ?? original }), more);
    button("Original maze", () => { said.textContent = ""; set({ text: original }); }, more);

    // --- what it knows ------------------------------------------------------------------------------------------------------
    const original = model.get("text");
    let given = original, own = null; // the map as it came to the reader, and as the reader painted it
    let world, purposes, vector, policy, psi, far, start, theme = stage.dress(box), v = null;
    let step = 4, since = 0, playing = !stage.still(), visible = true, frame = 0, last = 0, focus = null, drawn = false;
    let visits = [], episode = null, run = null, painting = null, tilt = 0, colours = new Map(), random = kernel.generator(Date.now() % 2 ** 31);
    const set = (values) => { for (const name in values) model.set(name, values[name]); model.save_changes(); };
    const say = (text) => { said.textContent = text; };

    // The map has changed: everything anew.
    function rebuild() {
      let next;
      try {
        next = kernel.parse(model.get("text"));
        if (!kernel.connected(next)) throw new Error("The map falls into parts that no path connects.");
        purposes = kernel.eigenpurposes(next, next.n <= 150 ? next.n : Math.min(next.n, Math.max(9, model.get("index") + 1)));
      } catch (problem) { say(problem.message); return; }
      world = next;
      if (world.text !== own) given = world.text;
      steer();
      mine.hidden = [null, model.get("text")].includes(stage.kept());
    }

    // Direction, sign or discount have changed: the option anew.
    function steer() {
      if (!world) return;
      const index = Math.max(0, Math.min(model.get("index"), world.n - 1)), gamma = Math.min(0.999, Math.max(0, model.get("gamma"))), sign = model.get("sign") < 0 ? -1 : 1;
      if (index >= purposes.length) purposes = kernel.eigenpurposes(world, index + 1);
      vector = purposes[index].vector.map((entry) => sign * entry);
      policy = kernel.eigenoption(world, vector, gamma);
      far = kernel.range(world.n).map((s) => kernel.follow(world, policy, s).length - 1);
      start = vector.indexOf(Math.min(...vector));
      psi = kernel.successors(world, gamma)(start);
      run = null;
      forget();
      el.eigenlib = { text: model.get("text"), values: purposes.map((pair) => pair.value), vector: [...vector], policy, index, gamma };
      describe(index, sign);
      dress();
      wake();
    }
    const forget = () => { visits = new Float64Array(world.n); episode = null; };

    // The same in words, for those who cannot see it; in numbers for all.
    function describe(index, sign) {
      const ends = policy.filter((action) => action < 0).length, name = `${sign < 0 ? "−" : ""}e${subscript(index)}`, path = kernel.follow(world, policy, start);
      const option = ends === world.n ? "No option: it ends everywhere." : `The option ends in ${count(ends, "tile")}; the longest way there takes ${count(Math.max(...far), "step")}.`;
      box.querySelector(`#${number}`).textContent = `${count(world.n, "tile")}, direction ${name}. ${option}`;
      const chance = path.length > 1 ? kernel.hittingTimes(world)(path.at(-1))[start] : 0;
      steps[4].querySelector("small").textContent = path.length > 1
        ? `From the lowest tile to its end: ${count(path.length - 1, "step")} with the option, ${Math.round(chance).toLocaleString("en")} on average by chance.`
        : "This direction is flat: there is nothing to climb.";
      canvas.setAttribute("aria-label", `Maze. Arrow keys move, the space bar adds or removes a wall. ${option}`);
    }

    // Buttons and colours as things stand.
    function dress() {
      theme = stage.dress(box);
      const index = el.eigenlib?.index, gamma = model.get("gamma");
      steps.forEach((one, k) => (k === step ? one.setAttribute("aria-current", "step") : one.removeAttribute("aria-current")));
      thumbs.forEach((one, k) => {
        one.hidden = !purposes || k + 1 >= purposes.length;
        one.setAttribute("aria-pressed", String(index === k + 1));
        if (!one.hidden) stage.map(one.querySelector("canvas"), world, theme, one.clientWidth - 8 || 72, stage.signed(purposes[k + 1].vector, theme));
      });
      pause.textContent = playing ? "Pause" : "Play";
      lie.textContent = model.get("flat") ? "Landscape" : "Flat";
      if (document.activeElement !== slider) slider.value = gamma;
      shown.textContent = gamma.toFixed(3).replace(/0$/, "");
      invite.hidden = drawn || step < 4;
    }

    function go(to) {
      step = to;
      since = performance.now();
      if (to === 0) forget();
      if (to === 4) run = null;
      if (!stage.still()) playing = true;
      dress();
      wake();
    }

    // --- drawing ------------------------------------------------------------------------------------------------------------
    // What a cell should look like now. Colours and heights move there in a few frames, so that every change can be followed.
    function goals() {
      const signed = step >= 2, top = (signed ? kernel.largest(vector) : kernel.largest(step ? psi : visits)) || 1;
      const height = stage.relief(world, vector, signed ? undefined : 0);
      return (r, c) => {
        const s = world.at[r][c];
        if (s < 0) return { colour: theme.wall, height: height(r, c) };
        const colour = signed ? stage.tint(theme.signed, (1 + vector[s] / top) / 2) : stage.tint(theme.glow, Math.sqrt((step ? psi : visits)[s] / top));
        return { colour, height: height(r, c) };
      };
    }
    const heightAt = (r, c) => colours.get(r * world.width + c)?.height ?? 0;

    function paint(now) {
      frame = 0;
      if (!world || !el.isConnected) return;
      const passed = Math.min(100, now - last), jump = stage.still() || !last;
      last = now;
      if (playing && !stage.still()) act(now);
      const ease = jump ? 1 : 1 - Math.exp(-passed / 90), width = ground.clientWidth || 360;
      const lean = step >= 2 && !model.get("flat") ? 1 : 0;
      let moving = Math.abs(lean - tilt) > 0.002;
      tilt = moving ? tilt + (lean - tilt) * (jump ? 1 : 1 - Math.exp(-passed / 260)) : lean;
      v = stage.view(world, width, 620, tilt);
      const goal = goals(), brush = stage.brushFor(canvas, width, v.tall);
      stage.blocks(brush, world, v, (r, c) => {
        const key = r * world.width + c, aim = goal(r, c), was = colours.get(key) ?? aim, wall = world.at[r][c] < 0;
        const fast = wall !== was.wall ? 1 : ease; // a wall stands at once
        const gone = Math.abs(aim.height - was.height) + Math.abs(aim.colour[0] - was.colour[0]) / 255 + Math.abs(aim.colour[2] - was.colour[2]) / 255;
        if (gone < 0.004) { const there = { ...aim, wall }; colours.set(key, there); return there; }
        moving = true;
        const there = { wall, height: was.height + (aim.height - was.height) * ease, colour: was.colour.map((shade, i) => shade + (aim.colour[i] - shade) * fast) };
        colours.set(key, there);
        return there;
      }, step >= 3 ? option(brush, now) : null);
      if (step === 0) walkers(brush, now);
      if (step === 4) agent(brush, now);
      if (focus && document.activeElement === canvas) {
        const corners = v.faces(...focus, heightAt(...focus))[0];
        for (const [colour, wide] of [["#16181d", 5], [theme.agent, 2.5]]) {
          brush.strokeStyle = colour;
          brush.lineWidth = wide;
          brush.beginPath();
          for (const corner of corners) brush.lineTo(...corner);
          brush.closePath();
          brush.stroke();
        }
      }
      if (visible && (moving || (playing && !stage.still()) || now - since < 1500)) wake();
    }
    const wake = () => { frame ||= requestAnimationFrame(paint); };

    // Arrows come from where the option ends, backwards.
    function option(brush, now) {
      const age = step > 3 || stage.still() ? Infinity : now - since, longest = Math.max(...far);
      return (r, c) => {
        const s = world.at[r][c];
        if (s < 0 || !longest) return;
        const share = Math.min(1, Math.max(0, age - (1400 * far[s]) / longest) / 250);
        if (share > 0) stage.mark(brush, v, [r, c], colours.get(r * world.width + c), policy[s], share * (policy[s] < 0 ? 1 : 0.8));
      };
    }

    const spot = (s) => { const [r, c] = world.cells[s]; return v.at(r + 0.5, c + 0.5, heightAt(r, c)); };
    const between = (s, t, share) => spot(s).map((from, i) => from + (spot(t)[i] - from) * share);
    function disc(brush, [x, y], size, fill, rim) {
      brush.beginPath();
      brush.arc(x, y, size, 0, 2 * Math.PI);
      brush.fillStyle = fill;
      brush.fill();
      if (rim) { brush.strokeStyle = rim; brush.lineWidth = Math.max(1.5, size / 4); brush.stroke(); }
    }

    // Walkers leave the start together, again and again; a visit after t steps counts γᵗ, so that in the long run the glow is Ψ.
    function act(now) {
      if (now - since > STEPS[step].lasts) go(step + 1);
      if (step === 0 && (!episode || now - episode.at > STRIDE)) {
        const t = episode ? episode.t + 1 : 0, gamma = model.get("gamma");
        if (!episode || t > 26) episode = { at: now, t: 0, from: Array(WALKERS).fill(start), to: Array(WALKERS).fill(start) };
        else episode = { at: now, t, from: episode.to, to: episode.to.map((s) => world.next[4 * s + Math.floor(4 * random())]) };
        for (const s of episode.to) visits[s] += gamma ** episode.t;
      }
      if (step === 4 && (!run || now - run.at > PACE * (run.path.length + 9))) {
        const far = kernel.range(world.n).filter((s) => policy[s] >= 0);
        const from = run && far.length ? far[Math.floor(far.length * random())] : start;
        run = { at: now, path: kernel.follow(world, policy, from) };
      }
    }
    function walkers(brush, now) {
      if (!episode) return;
      const share = Math.min(1, (now - episode.at) / (0.8 * STRIDE));
      episode.to.forEach((s, k) => {
        const [x, y] = between(episode.from[k], s, share), angle = 2.4 * k, off = 0.3 * v.size * Math.sqrt((k + 0.5) / WALKERS);
        disc(brush, [x + off * Math.cos(angle), y + off * Math.sin(angle)], Math.max(1.3, v.size / 17), theme.dot);
      });
    }
    function agent(brush, now) {
      const path = stage.still() || !run ? kernel.follow(world, policy, start) : run.path;
      if (path.length < 2) return;
      const gone = stage.still() || !run ? path.length - 1 : Math.min(path.length - 1, (now - run.at) / PACE), at = Math.floor(gone);
      const here = at + 1 < path.length ? between(path[at], path[at + 1], gone - at) : spot(path[at]);
      for (const [colour, wide] of [["rgba(20, 20, 24, .75)", 0.3], [theme.agent, 0.17]]) {
        brush.strokeStyle = colour;
        brush.lineWidth = wide * v.size;
        brush.lineJoin = brush.lineCap = "round";
        brush.beginPath();
        for (const s of path.slice(0, at + 1)) brush.lineTo(...spot(s));
        brush.lineTo(...here);
        brush.stroke();
      }
      disc(brush, here, v.size * 0.3, theme.agent, "#16181d");
    }

    // --- the reader's hand --------------------------------------------------------------------------------------------------
    // Make cells walls, or free, as far as that is allowed, and say what happened to the last one.
    function build(cells, wall) {
      const rows = world.rows.map((line) => [...line]), before = given.split("\n"), text = () => rows.map((line) => line.join("")).join("\n");
      for (const [r, c] of cells) {
        const was = rows[r][c], edge = r === 0 || c === 0 || r === rows.length - 1 || c === rows[0].length - 1;
        if (kernel.isWall(was) === wall) continue;
        if (!wall && edge && kernel.isWall(before[r]?.[c])) { say("The outer wall stays."); continue; }
        rows[r][c] = wall ? "X" : ".";
        try {
          if (!kernel.connected(kernel.parse(text()))) throw new Error("That wall would cut the maze in two, so it was not built.");
          say(wall ? "Wall built." : "Wall removed.");
        } catch (problem) { rows[r][c] = was; say(world.n === 1 ? "The last tile stays." : problem.message); }
      }
      if (text() === world.text) return;
      drawn = true;
      if (step < 4) { step = 4; since = 0; }
      own = text();
      stage.keep(own);
      set({ text: own });
    }
    const cellAt = (event) => {
      const area = canvas.getBoundingClientRect();
      return v?.pick(event.clientX - area.left, event.clientY - area.top, heightAt);
    };
    canvas.addEventListener("pointerdown", (event) => {
      const cell = cellAt(event);
      if (!cell || event.button) return;
      event.preventDefault();
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      focus = null;
      painting = { wall: world.at[cell[0]][cell[1]] >= 0, cell };
      build([cell], painting.wall);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!painting) return;
      const cell = cellAt(event), [r, c] = painting.cell;
      if (!cell || (cell[0] === r && cell[1] === c)) return;
      const steps = Math.max(Math.abs(cell[0] - r), Math.abs(cell[1] - c)); // a quick hand skips cells: all between are meant
      build(kernel.range(steps).map((k) => [Math.round(r + ((cell[0] - r) * (k + 1)) / steps), Math.round(c + ((cell[1] - c) * (k + 1)) / steps)]), painting.wall);
      painting.cell = cell;
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { painting = null; });
    canvas.addEventListener("keydown", (event) => {
      const way = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
      if (way < 0 && event.key !== " ") return;
      event.preventDefault();
      focus = focus ?? [Math.min(1, world.height - 1), Math.min(1, world.width - 1)];
      if (way < 0) build([focus], world.at[focus[0]][focus[1]] >= 0);
      else {
        const [down, over] = kernel.MOVES[way];
        focus = [Math.min(world.height - 1, Math.max(0, focus[0] + down)), Math.min(world.width - 1, Math.max(0, focus[1] + over))];
        say(`Row ${focus[0] + 1}, column ${focus[1] + 1}: ${world.at[focus[0]][focus[1]] < 0 ? "wall" : "free"}.`);
      }
      wake();
    });
    canvas.addEventListener("blur", wake);
    async function shareIt() {
      location.hash = stage.toHash(model.get("text"));
      try { await navigator.clipboard.writeText(location.href); say("The address of this page now holds your maze, and was copied."); }
      catch { say("The address of this page now holds your maze: copy it from above."); }
    }

    // --- start --------------------------------------------------------------------------------------------------------------
    const change = (name, then) => { model.on(`change:${name}`, then); return () => model.off(`change:${name}`, then); };
    const ends = [change("text", rebuild), ...["index", "sign", "gamma"].map((name) => change(name, steer)), change("flat", () => { dress(); wake(); }),
      stage.watchTheme(() => { dress(); wake(); })];
    const sized = new ResizeObserver(wake), seen = new IntersectionObserver(([entry]) => { visible = entry.isIntersecting; if (visible) wake(); });
    sized.observe(ground);
    seen.observe(canvas);
    const read = () => { try { const text = stage.fromHash(location.hash); if (text) set({ text }); } catch (problem) { say(problem.message); } };
    rebuild();
    if (share) { addEventListener("hashchange", read); read(); }
    if (model.get("story") && !stage.still()) go(0);
    return () => { for (const end of ends) end(); sized.disconnect(); seen.disconnect(); removeEventListener("hashchange", read); cancelAnimationFrame(frame); };
  }
  return { render };
})();
