// What the explorers draw with: colours for light and dark pages, a maze seen from above or from the side, small controls.
// A classic script after kernel.js; everything is in `stage`.

const stage = (() => {
  const hex = (text) => text.split(" ").map((one) => [0, 2, 4].map((at) => parseInt(one.slice(at, at + 2), 16)));
  // Signed quantities are centred on zero: paper in the light, night in the dark; red and blue differ for every common colour
  // blindness. Counts glow. The stops of a ramp are evenly spaced.
  const THEMES = {
    light: {
      signed: hex("053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f"),
      glow: hex("fbf7ef fdeac2 fdd07a fba23c ee6a24 c3331f 7a1230"),
      wall: [104, 112, 125], ink: "#1f2430", accent: "#1d5c8a", rim: "#ffffff", agent: "#ffd23f", dot: "#3b2430",
      sr: "#2f6690", pvf: "#b06407", td: "#2b7a72", grey: "#6b7280",
    },
    dark: {
      signed: hex("8cc4ff 64a8f2 3f83d2 2c5f9c 213f62 1f242c 54292c 8d3a39 c3574c ea7a63 ffa188"),
      glow: hex("1a1b22 33203f 6b2354 a8324f dc5a38 f79c3a ffe9a0"),
      wall: [92, 101, 115], ink: "#e4e7ec", accent: "#8ec3f0", rim: "#14171c", agent: "#ffd23f", dot: "#ffe9a0",
      sr: "#7db8e8", pvf: "#f0a848", td: "#5fc9bd", grey: "#9aa3b0",
    },
  };

  // The colour of a share in [0, 1] of a ramp, as [red, green, blue].
  function tint(ramp, share) {
    const place = Math.min(1, Math.max(0, share)) * (ramp.length - 1), low = Math.min(ramp.length - 2, Math.floor(place));
    return ramp[low].map((shade, i) => shade + (ramp[low + 1][i] - shade) * (place - low));
  }
  const css = ([r, g, b], light = 1) => `rgb(${r * light | 0},${g * light | 0},${b * light | 0})`;

  // Light or dark: what the element stands on decides, be it JupyterLab's theme, the report's or the system's.
  function theme(el) {
    for (let at = el; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
      if (alpha > 0) return r + g + b < 384 ? THEMES.dark : THEMES.light;
    }
    return THEMES.light;
  }

  // Call `then` when the page's theme may have changed.
  function watchTheme(then) {
    const observer = new MutationObserver(() => then());
    for (const root of [document.documentElement, document.body]) observer.observe(root, { attributes: true, attributeFilter: ["class", "data-theme", "data-jp-theme-light", "style"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", then);
    return () => { observer.disconnect(); matchMedia("(prefers-color-scheme: dark)").removeEventListener("change", then); };
  }
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // An element with properties, attributes (names with a dash, or role) and listeners (functions), at the end of its parent.
  function make(tag, given, parent) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (name.includes("-") || name === "role" || name === "for") node.setAttribute(name, value);
      else node[name] = value;
    }
    parent?.append(node);
    return node;
  }

  const GAMMAS = [...kernel.range(100).map((k) => k / 100), 0.995, 0.999], short = (gamma) => gamma.toFixed(3).replace(/0$/, "");
  const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

  const STYLE = `
  .eigenlib-live { container-type: inline-size; max-width: 74rem; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
  .eigenlib-live canvas { display: block; width: 100%; border-radius: .3rem; }
  .eigenlib-live .row { display: flex; flex-wrap: wrap; gap: .45rem; align-items: center; }
  .eigenlib-live button { font: inherit; color: inherit; background: transparent; cursor: pointer; padding: .25rem .75rem; border-radius: .45rem;
    border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
  .eigenlib-live button:hover { background: color-mix(in srgb, currentColor 10%, transparent); }
  .eigenlib-live button.main, .eigenlib-live .choice [aria-pressed="true"] { background: var(--accent); color: var(--on); border-color: var(--accent); font-weight: 600; }
  .eigenlib-live :is(button, input, select, canvas):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .eigenlib-live label { display: flex; gap: .5rem; align-items: center; } .eigenlib-live input { width: 9rem; accent-color: var(--accent); }
  .eigenlib-live .desk { gap: .5rem 1.4rem; } .eigenlib-live .wide input { width: min(15rem, 48cqw); } .eigenlib-live .choice { display: flex; flex-wrap: wrap; gap: .3rem; align-items: center; }
  .eigenlib-live .pick { cursor: pointer; } .eigenlib-live select { font: inherit; color: inherit; background: transparent; padding: .2rem .4rem; border-radius: .45rem; max-width: 100%; border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
  .eigenlib-live option { background: Canvas; color: CanvasText; }
  .eigenlib-live output { min-width: 2.6rem; font-variant-numeric: tabular-nums; }
  .eigenlib-live .said { min-height: 1.5em; margin: .5rem 0 0; font-size: 14px; }
  .eigenlib-live .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  .eigenlib-live .panels { display: grid; gap: .8rem 1.2rem; grid-template-columns: repeat(2, minmax(0, 1fr)); margin-top: .6rem; }
  @container (min-width: 860px) { .eigenlib-live .panels { grid-template-columns: repeat(var(--columns, 4), minmax(0, 1fr)); } }
  .eigenlib-live figure { margin: 0; min-width: 0; display: grid; grid-template-rows: subgrid; grid-row: span 2; row-gap: .15rem; align-items: start; }
  .eigenlib-live figcaption { font-size: 14px; min-height: 1.5em; align-self: end; }`;

  // The box of an explorer. Keys stay inside: JupyterLab would take them for itself.
  function box(el, name, style = "") {
    const made = make("div", { className: `eigenlib-live ${name}`, "data-lm-suppress-shortcuts": "true", keydown: (event) => event.stopPropagation() }, el);
    make("style", { textContent: STYLE + style }, made);
    return made;
  }
  // Colours as the page has them now; returns the theme.
  function dress(box) {
    const now = theme(box);
    box.style.setProperty("--accent", now.accent);
    box.style.setProperty("--on", now.rim);
    return now;
  }

  // --- a maze ---------------------------------------------------------------------------------------------------------------

  // How a world lies on a canvas `width` pixels wide and `share` of that tall: tilt 0 is the map from above; tilt 1 turns it a
  // little and leans it back, so that heights (in cells, up to `rise`) show. at(r, c, h) is a point, r and c counted in corners.
  const TURN = 0.4, LEAN = 0.4, UP = 0.85;
  function view(world, width, most, tilt, share = 0.84, rise = 2.4) {
    const tall = Math.min(most, width * Math.min(share, Math.max(0.3, world.height / world.width))), deep = 1 - LEAN * tilt;
    const cos = Math.cos(TURN * tilt), sin = Math.sin(TURN * tilt), up = UP * tilt;
    const wide = world.width * cos + world.height * sin, high = (world.width * sin + world.height * cos) * deep + rise * up;
    const size = Math.min(width / wide, tall / high), left = (width - wide * size) / 2 + world.height * sin * size;
    const top = (tall - high * size) / 2 + rise * up * size;
    const at = (r, c, h = 0) => [left + (c * cos - r * sin) * size, top + ((c * sin + r * cos) * deep - h * up) * size];
    // The three faces of a block that can be seen: above, towards the reader, to the right.
    const faces = (r, c, h) => {
      const [a, b, d, e] = [at(r, c, h), at(r, c + 1, h), at(r + 1, c + 1, h), at(r + 1, c, h)], drop = h * up * size;
      const foot = ([x, y]) => [x, y + drop];
      return [[a, b, d, e], [e, d, foot(d), foot(e)], [d, b, foot(b), foot(d)]];
    };
    // The cell seen at a point, the nearest first, heights(r, c) as drawn; null outside.
    const pick = (x, y, heights) => {
      for (let r = world.height - 1; r >= 0; r--) for (let c = world.width - 1; c >= 0; c--)
        if (faces(r, c, heights(r, c)).some((face) => inside(face, x, y))) return [r, c];
      return null;
    };
    return { size, tall, tilt, width, at, faces, pick, cos, sin, deep };
  }
  const inside = (corners, x, y) => {
    let left = 0;
    corners.forEach(([x1, y1], k) => { const [x2, y2] = corners[(k + 1) % 4]; if ((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= 0) left++; });
    return left === 4;
  };

  // Give a canvas its size in pixels of the page, and a brush that draws in these.
  function brushFor(canvas, width, height) {
    const sharp = window.devicePixelRatio || 1, w = Math.round(width * sharp), h = Math.round(height * sharp);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.height = `${height}px`; }
    const brush = canvas.getContext("2d");
    brush.setTransform(sharp, 0, 0, sharp, 0, 0);
    brush.clearRect(0, 0, width, height);
    return brush;
  }

  // Every cell as a block, those at the back first: cell(r, c) → { colour: [r, g, b], height }, then after(r, c) on top of it.
  function blocks(brush, world, v, cell, after) {
    const fill = (corners, colour) => {
      brush.beginPath();
      for (const [x, y] of corners) brush.lineTo(x, y);
      brush.closePath();
      brush.fillStyle = brush.strokeStyle = colour;
      brush.fill();
      brush.stroke(); // no hair lines between cells
    };
    brush.lineWidth = 0.8;
    brush.lineJoin = "round";
    for (let r = 0; r < world.height; r++) for (let c = 0; c < world.width; c++) {
      const { colour, height } = cell(r, c);
      if (v.tilt) v.faces(r, c, height).forEach((face, k) => fill(face, css(colour, [1, 0.74, 0.58][k])));
      else {
        const [[x, y], [right, low]] = [v.at(r, c).map(Math.round), v.at(r + 1, c + 1).map(Math.round)];
        brush.fillStyle = css(colour);
        brush.fillRect(x, y, right - x, low - y);
      }
      after?.(r, c);
    }
  }

  // An action as an arrow, an end (−1) as a disc, in the middle of a cell of this height; light on dark, dark on light.
  const ARROW = [[0, -0.34], [0.24, -0.04], [0.08, -0.04], [0.08, 0.32], [-0.08, 0.32], [-0.08, -0.04], [-0.24, -0.04]];
  function mark(brush, v, [r, c], { height, colour }, action, share = 1) {
    const [x, y] = v.at(r + 0.5, c + 0.5, height), dark = colour[0] * 0.3 + colour[1] * 0.59 + colour[2] * 0.11 < 128;
    brush.save();
    brush.globalAlpha = share;
    brush.transform(v.cos * v.size, v.sin * v.deep * v.size, -v.sin * v.size, v.cos * v.deep * v.size, x, y);
    brush.fillStyle = dark ? "#ffffff" : "#16181d";
    brush.beginPath();
    if (action < 0) {
      brush.arc(0, 0, 0.27, 0, 2 * Math.PI);
      brush.lineWidth = 0.12;
      brush.strokeStyle = dark ? "#16181d" : "#ffffff";
      brush.stroke();
    } else {
      brush.rotate((action * Math.PI) / 2);
      for (const [over, down] of ARROW) brush.lineTo(over, down);
    }
    brush.fill();
    brush.restore();
  }

  // A map from above: colour(s) of each state.
  function map(canvas, world, theme, width, colour) {
    const v = view(world, width, 460, 0, 1), brush = brushFor(canvas, width, v.tall);
    blocks(brush, world, v, (r, c) => ({ colour: world.at[r][c] < 0 ? theme.wall : colour(world.at[r][c]), height: 0 }));
  }
  // Mark a tile: a dot, or a ring.
  function ring({ v, brush }, [r, c, height = 0], theme, filled = false) {
    const [x, y] = v.at(r + 0.5, c + 0.5, height);
    brush.beginPath();
    brush.arc(x, y, Math.max(3, v.size * (filled ? 0.26 : 0.42)), 0, 2 * Math.PI);
    brush.fillStyle = "#ffffff";
    if (filled) brush.fill();
    for (const [colour, wide] of [["#16181d", filled ? 2 : 4], ...(filled ? [] : [[theme.agent, 2]])]) { brush.strokeStyle = colour; brush.lineWidth = wide; brush.stroke(); }
  }
  // A letter on a tile, readable on every colour.
  function inscribe(v, brush, [r, c, height = 0], letter) {
    const [x, y] = v.at(r + 0.5, c + 0.5, height), size = Math.max(9, Math.min(16, 0.75 * v.size));
    brush.font = `700 ${size}px system-ui, sans-serif`;
    brush.textAlign = "center";
    brush.lineWidth = size / 3;
    brush.strokeStyle = "#ffffff";
    brush.fillStyle = "#16181d";
    brush.strokeText(letter, x, y + 0.36 * size);
    brush.fillText(letter, x, y + 0.36 * size);
  }
  // The colours of a signed vector, centred on zero.
  function signed(vector, theme, paler = 1) {
    const top = paler * kernel.largest(vector) || 1;
    return (s) => tint(theme.signed, (1 + vector[s] / top) / 2);
  }
  // The colours of counts, on a logarithmic scale that ends `decades` below `top`, as in the figures.
  const glow = (counts, theme, top, decades = 4) => (s) => tint(theme.glow, 1 + Math.log10(Math.max(counts[s], 1e-300) / top) / decades);

  // Heights (in cells, up to `rise`) of a signed vector's landscape; a wall stands a little above the tiles around it.
  const WALL = 0.2;
  function relief(world, vector, rise = 2.3) {
    const top = kernel.largest(vector) || 1, heights = Array.from(vector, (entry) => (rise * (entry / top + 1)) / 2);
    return (r, c) => {
      if (world.at[r][c] >= 0) return heights[world.at[r][c]];
      let sum = 0, beside = 0;
      for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) { const t = world.at[r + i]?.[c + j] ?? -1; if (t >= 0) { sum += heights[t]; beside++; } }
      return WALL + (beside ? sum / beside : rise / 2);
    };
  }

  // --- charts -------------------------------------------------------------------------------------------------------------

  // Axes of a chart; what it returns draws in the data's own units. An axis is { from, to, ticks: [numbers or [number, text]],
  // label, log }; what lies beyond an axis is drawn at its end.
  function chart(canvas, theme, width, x, y, tall = Math.min(260, Math.max(190, width * 0.8))) {
    const brush = brushFor(canvas, width, tall), left = 50, low = tall - 36;
    const share = (axis, value) => {
      const within = Math.min(Math.max(value, Math.min(axis.from, axis.to)), Math.max(axis.from, axis.to));
      return axis.log ? Math.log(within / axis.from) / Math.log(axis.to / axis.from) : (within - axis.from) / (axis.to - axis.from);
    };
    const place = ([over, up]) => [left + share(x, over) * (width - left - 12), low - share(y, up) * (low - 10)];
    brush.font = "13px system-ui, sans-serif";
    brush.strokeStyle = brush.fillStyle = theme.ink;
    brush.lineWidth = 1;
    brush.globalAlpha = 0.85;
    brush.beginPath();
    for (const point of [[left, 4], [left, low], [width - 4, low]]) brush.lineTo(...point);
    brush.stroke();
    for (const [axis, across] of [[x, true], [y, false]]) for (const tick of axis.ticks) {
      const [value, text] = Array.isArray(tick) ? tick : [tick, tick.toLocaleString("en")], [px, py] = place(across ? [value, y.from] : [x.from, value]);
      brush.textAlign = across ? "center" : "right";
      if (across) brush.fillText(text, Math.min(px, width - 14), low + 16); else brush.fillText(text, left - 6, py + 4);
    }
    brush.textAlign = "center";
    brush.fillText(x.label ?? "", (left + width) / 2, low + 32);
    brush.globalAlpha = 1;
    return {
      line(points, colour, wide = 2.5, dash = []) {
        brush.strokeStyle = colour;
        brush.lineWidth = wide;
        brush.lineJoin = "round";
        brush.setLineDash(dash);
        brush.beginPath();
        for (const point of points) brush.lineTo(...place(point));
        brush.stroke();
        brush.setLineDash([]);
      },
      dots(points, colour, size = 2.5) {
        brush.fillStyle = colour;
        for (const point of points) { brush.beginPath(); brush.arc(...place(point), size, 0, 2 * Math.PI); brush.fill(); }
      },
      words(text, point, colour = theme.ink, align = "left") {
        const [px, py] = place(point);
        brush.font = "600 13px system-ui, sans-serif";
        brush.fillStyle = colour;
        brush.textAlign = align;
        brush.fillText(text, px, py);
      },
    };
  }

  // --- a desk: controls in a row, panels below them, one line of words --------------------------------------------------------

  const nearest = (stops, value) => stops.reduce((best, one, k) => (Math.abs(one - value) < Math.abs(stops[best] - value) ? k : best), 0);
  const KEYS = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"];

  // What an explorer stands on. Every control is bound to a trait of the model, so that Python, the hand and `play` move the same
  // thing; pictures are drawn in frames, and only when something changed. A tile under the pointer is ringed in every map.
  function desk({ model, el }, name, style = "") {
    const root = box(el, `eigenlib-${name}`, style), bar = make("div", { className: "row desk" }, root), grid = make("div", { className: "panels" }, root);
    const said = make("p", { className: "said", role: "status" }, root), refreshers = [], ends = [], original = model.get("text");
    let frame = 0, playing = null, since = 0, paint = null, unfit = "", exchange = () => {};
    const d = { el, root, bar, world: null, theme: dress(root), hover: null, problem: "", get: (trait) => model.get(trait), say: (text) => { said.textContent = text; } };
    d.set = (values) => { for (const trait in values) model.set(trait, values[trait]); model.save_changes(); };
    d.wake = () => { frame ||= requestAnimationFrame(draw); };

    // Something that takes long, after the frame that is being drawn has been seen; dropped if the map changes before.
    d.later = (then) => { const { world } = d; setTimeout(() => { if (world === d.world) { then(); d.wake(); } }, 30); };

    d.button = (text, click, parent = bar) => make("button", { type: "button", textContent: text, click }, parent);
    // A slider over `stops`; show(value) is read beside it. stops may be a function, where they depend on the map.
    d.slide = (text, trait, stops, { show = String, wide = false } = {}) => {
      const label = make("label", { textContent: text, className: wide ? "wide" : "" }, bar), list = typeof stops === "function" ? stops : () => stops;
      const slider = make("input", { type: "range", min: 0, step: 1, input: () => { playing = null; d.set({ [trait]: list()[slider.value] }); } }, label), shown = make("output", {}, label);
      refreshers.push(() => {
        slider.max = list().length - 1;
        slider.value = nearest(list(), model.get(trait));
        shown.textContent = show(model.get(trait));
        slider.setAttribute("aria-valuetext", `${text} ${shown.textContent}`);
      });
      return label;
    };
    // Buttons of which one is pressed. options: values, or [value, text] pairs.
    d.choose = (text, trait, options) => {
      const group = make("div", { className: "choice", role: "group", "aria-label": text }, bar);
      make("span", { textContent: text }, group);
      for (const [value, words] of options.map((one) => (Array.isArray(one) ? one : [one, one]))) {
        const one = d.button(words, () => { playing = null; d.set({ [trait]: value }); }, group);
        refreshers.push(() => one.setAttribute("aria-pressed", String(model.get(trait) === value)));
      }
    };
    // A list to choose from. names: a function.
    d.list = (text, names, chosen, pick) => {
      const label = make("label", { textContent: text }, bar), list = make("select", { change: () => { playing = null; pick(list.value); } }, label);
      refreshers.push(() => {
        if ([...list.options].map((one) => one.value).join("\n") !== names().join("\n")) list.replaceChildren(...names().map((one) => make("option", { textContent: one, value: one })));
        list.value = chosen();
      });
    };
    // Play steps a trait through its stops, from the first one again when it stood at the last.
    d.play = (trait, stops, pace) => {
      const list = typeof stops === "function" ? stops : () => stops;
      const button = d.button("Play", () => {
        playing = playing ? null : { trait, list, pace };
        if (playing && nearest(list(), model.get(trait)) === list().length - 1) d.set({ [trait]: list()[0] });
        since = performance.now();
        d.wake();
      });
      button.className = "main";
      refreshers.push(() => { button.textContent = playing?.trait === trait ? "Pause" : "Play"; });
    };

    // A figure with its title. Maps (tiles: true) light the tile under the pointer; with pick(s) a click or Enter chooses a tile,
    // and arrow keys move from at(), choosing as they go unless `slow`.
    d.panel = ({ tiles = false, pick = null, at = () => 0, slow = false, wide = false } = {}) => {
      const figure = make("figure", { className: wide ? "wide" : "" }, grid), title = make("figcaption", {}, figure), canvas = make("canvas", { role: "img" }, figure);
      const panel = { figure, canvas, title, view: null, cursor: null, say(text, label = text) { title.textContent = text; canvas.setAttribute("aria-label", label); } };
      const tileAt = (event) => {
        const area = canvas.getBoundingClientRect(), cell = panel.view?.pick(event.clientX - area.left, event.clientY - area.top, panel.heights ?? (() => 0));
        const s = cell ? d.world.at[cell[0]][cell[1]] : -1;
        return s < 0 ? null : s;
      };
      if (tiles) {
        canvas.addEventListener("pointermove", (event) => { d.hover = tileAt(event); d.wake(); });
        canvas.addEventListener("pointerleave", () => { d.hover = null; d.wake(); });
      }
      if (!pick) return panel;
      Object.assign(canvas, { tabIndex: 0, className: "pick" });
      canvas.setAttribute("role", "application");
      canvas.addEventListener("click", (event) => { const s = tileAt(event); if (s !== null) { panel.cursor = s; pick(s); } });
      canvas.addEventListener("focus", d.wake);
      canvas.addEventListener("blur", () => { d.hover = null; d.wake(); });
      canvas.addEventListener("keydown", (event) => {
        const way = KEYS.indexOf(event.key), here = slow ? Math.min(panel.cursor ?? at(), d.world.n - 1) : at();
        if (way >= 0) {
          const s = beside(d.world, here, way);
          panel.cursor = d.hover = s;
          if (!slow) pick(s);
        } else if (slow && (event.key === " " || event.key === "Enter")) pick(here);
        else return;
        event.preventDefault();
        d.wake();
      });
      return panel;
    };
    // Draw a map into a panel: colour(s) of each tile; then arrows of a policy (−1 where it ends, −2 for nothing), letters and dots
    // on tiles, and the ring of the hover. With a vector it is the landscape of this vector.
    d.map = (panel, colour, { policy = null, dots = [], vector = null, letters = d.world.landmarks } = {}) => {
      const width = Math.max(140, panel.figure.clientWidth), { world, theme } = d;
      panel.heights = vector ? relief(world, vector) : () => 0;
      const v = panel.view = view(world, width, 460, vector ? 1 : 0, 1), brush = brushFor(panel.canvas, width, v.tall);
      const cell = (r, c) => ({ colour: world.at[r][c] < 0 ? theme.wall : colour(world.at[r][c]), height: panel.heights(r, c) });
      const arrows = policy && policy.some((action) => action >= 0);
      blocks(brush, world, v, cell, (r, c) => { const s = world.at[r][c]; if (arrows && s >= 0 && policy[s] > -2) mark(brush, v, [r, c], cell(r, c), policy[s], 0.85); });
      const lift = (s) => [...world.cells[s], panel.heights(...world.cells[s])];
      for (const s of dots) ring({ v, brush }, lift(s), theme, true);
      for (const [letter, s] of Object.entries(letters)) inscribe(v, brush, lift(s), letter);
      if (world.doors) world.cells.forEach(([r, c], s) => { const door = "^>v<".indexOf(world.rows[r][c]); if (door >= 0) inscribe(v, brush, lift(s), "⇑⇒⇓⇐"[door]); });
      if (d.hover !== null && d.hover < world.n) ring({ v, brush }, lift(d.hover), theme);
      return { v, brush };
    };
    d.chart = (panel, x, y, tall) => chart(panel.canvas, d.theme, Math.max(140, panel.figure.clientWidth), x, y, tall);
    // Where a tile is, in words.
    d.place = (s) => `row ${d.world.cells[s][0] + 1}, column ${d.world.cells[s][1] + 1}`;
    d.Place = (s) => `R${d.place(s).slice(1)}`;

    // Another map can be chosen by the reader: the own one, or the one the explorer came with.
    d.mazes = () => {
      const mine = d.button("My maze", () => d.set({ text: kept() })), back = d.button("Original maze", () => d.set({ text: original }));
      exchange = () => { mine.hidden = [null, model.get("text")].includes(kept()); back.hidden = model.get("text") === original; };
    };

    function draw(now) {
      frame = 0;
      if (!d.world || !el.isConnected) return;
      if (playing && now - since > playing.pace) {
        since = now;
        const stops = playing.list(), next = stops[nearest(stops, model.get(playing.trait)) + 1];
        if (next === undefined) playing = null; else d.set({ [playing.trait]: next });
      }
      const { more = false, ...told } = paint(now) ?? {};
      for (const refresh of refreshers) refresh();
      if (unfit || d.problem) d.say(unfit || d.problem); // until there is another map, or something else is done
      exchange();
      el.eigenlib = { text: d.world.text, done: !more, ...told };
      if (more || playing) d.wake();
    }
    // changes: { trait: what to do when it has changed }; `text`, when there is another map, also now. draw the frames with
    // painted(now) → what tests may see, and `more` where the next frame is to follow at once.
    d.start = (changes, painted) => {
      paint = painted;
      const rebuild = () => {
        const before = d.world;
        try {
          const world = kernel.parse(model.get("text"));
          if (!kernel.connected(world)) throw new Error("The map falls into parts that no path connects.");
          d.world = world;
          d.hover = null;
          changes.text?.();
          unfit = "";
        } catch (problem) { d.world = before; unfit = problem.message; d.say(unfit); } // what was there stays
        d.wake();
      };
      for (const [trait, then] of Object.entries({ ...changes, text: rebuild })) {
        const changed = () => { d.problem = ""; if (trait === "text" || d.world) then(); d.wake(); };
        model.on(`change:${trait}`, changed);
        ends.push(() => model.off(`change:${trait}`, changed));
      }
      ends.push(watchTheme(() => { d.theme = dress(root); d.wake(); }));
      const sized = new ResizeObserver(d.wake);
      sized.observe(grid);
      grid.style.setProperty("--columns", Math.min(4, grid.children.length));
      rebuild();
      return () => { for (const end of ends) end(); sized.disconnect(); cancelAnimationFrame(frame); };
    };
    return d;
  }

  // The next free tile from s that way, walls leapt over, so that arrow keys reach every room; s where there is none.
  function beside(world, s, way) {
    const [down, over] = kernel.MOVES[way];
    for (let [r, c] = world.cells[s]; world.at[r]?.[c] !== undefined; ) {
      r += down;
      c += over;
      if (world.at[r]?.[c] >= 0) return world.at[r][c];
    }
    return s;
  }

  // The reader's own maze, kept where the browser allows it, so that every explorer can use it.
  const MINE = "eigenlib-maze";
  function keep(text) { try { localStorage.setItem(MINE, text); } catch { /* then it lives on this page only */ } }
  function kept() {
    try {
      const text = localStorage.getItem(MINE);
      return text && kernel.connected(kernel.parse(text)) ? text : null;
    } catch { return null; }
  }

  // A maze in the address: rows with slashes between them, as one can also type it.
  const toHash = (text) => `#maze=${text.replaceAll("#", "X").replaceAll("\n", "/")}`;
  function fromHash(hash) {
    if (!hash.startsWith("#maze=")) return null;
    const world = kernel.parse(decodeURIComponent(hash.slice(6)).replaceAll("/", "\n"));
    if (world.n > 1500) throw new Error(`This maze has ${world.n} tiles; pages can follow up to 1,500.`);
    if (world.doors) throw new Error("This maze has one-way doors: its directions need Python.");
    if (!kernel.connected(world)) throw new Error("This maze falls into parts that no path connects.");
    return world.text;
  }

  return { tint, watchTheme, still, make, subscript, box, dress, view, brushFor, blocks, mark, map, signed, glow, GAMMAS, short, relief, desk, keep, kept, toHash, fromHash };
})();
