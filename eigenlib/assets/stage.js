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
      wall: [104, 112, 125], ink: "#1f2430", accent: "#1d5c8a", mark: "#16181d", rim: "#ffffff", agent: "#ffd23f", dot: "#3b2430",
    },
    dark: {
      signed: hex("8cc4ff 64a8f2 3f83d2 2c5f9c 213f62 1f242c 54292c 8d3a39 c3574c ea7a63 ffa188"),
      glow: hex("1a1b22 33203f 6b2354 a8324f dc5a38 f79c3a ffe9a0"),
      wall: [92, 101, 115], ink: "#e4e7ec", accent: "#8ec3f0", mark: "#f4f6fa", rim: "#14171c", agent: "#ffd23f", dot: "#ffe9a0",
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

  const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

  const STYLE = `
  .eigenlib-live { container-type: inline-size; max-width: 74rem; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
  .eigenlib-live canvas { display: block; width: 100%; border-radius: .3rem; }
  .eigenlib-live .row { display: flex; flex-wrap: wrap; gap: .45rem; align-items: center; }
  .eigenlib-live button { font: inherit; color: inherit; background: transparent; cursor: pointer; padding: .25rem .75rem; border-radius: .45rem;
    border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
  .eigenlib-live button:hover { background: color-mix(in srgb, currentColor 10%, transparent); }
  .eigenlib-live button.main, .eigenlib-live .choice [aria-pressed="true"] { background: var(--accent); color: var(--on); border-color: var(--accent); font-weight: 600; }
  .eigenlib-live :is(button, input, canvas):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .eigenlib-live label { display: flex; gap: .5rem; align-items: center; } .eigenlib-live input { width: 9rem; accent-color: var(--accent); }
  .eigenlib-live output { min-width: 2.6rem; font-variant-numeric: tabular-nums; }
  .eigenlib-live .said { min-height: 1.5em; margin: .5rem 0 0; font-size: 14px; }
  .eigenlib-live .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  .eigenlib-live .panels { display: grid; gap: .8rem 1.2rem; grid-template-columns: repeat(2, minmax(0, 1fr)); margin-top: .6rem; }
  @container (min-width: 860px) { .eigenlib-live .panels { grid-template-columns: repeat(4, minmax(0, 1fr)); } }
  .eigenlib-live figure { margin: 0; min-width: 0; } .eigenlib-live figcaption { font-size: 14px; min-height: 1.5em; }`;

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

  // A map from above: colour(s) of each state. Returns its view and brush, for more on top of it.
  function map(canvas, world, theme, width, colour) {
    const v = view(world, width, 460, 0, 1), brush = brushFor(canvas, width, v.tall);
    blocks(brush, world, v, (r, c) => ({ colour: world.at[r][c] < 0 ? theme.wall : colour(world.at[r][c]), height: 0 }));
    return { v, brush };
  }
  // Mark a tile of such a map: a dot, or a ring.
  function ring({ v, brush }, [r, c], theme, filled = false) {
    const [x, y] = v.at(r + 0.5, c + 0.5);
    brush.beginPath();
    brush.arc(x, y, Math.max(3, v.size * (filled ? 0.26 : 0.42)), 0, 2 * Math.PI);
    brush.fillStyle = "#ffffff";
    if (filled) brush.fill();
    for (const [colour, wide] of [["#16181d", filled ? 2 : 4], ...(filled ? [] : [[theme.agent, 2]])]) { brush.strokeStyle = colour; brush.lineWidth = wide; brush.stroke(); }
  }
  // The colours of a signed vector, centred on zero.
  function signed(vector, theme) {
    const top = kernel.largest(vector) || 1;
    return (s) => tint(theme.signed, (1 + vector[s] / top) / 2);
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

  return { tint, css, watchTheme, still, make, subscript, box, dress, view, brushFor, blocks, mark, map, ring, signed, keep, kept, toHash, fromHash };
})();
