// A maze that can be edited, its eigenvectors and options recomputed at every click, all in the browser: so it works in
// JupyterLab and in the exported report alike. The mathematics repeats eigenlib (T, eigenvectors, eigenoptions) for maps
// without doors or slips, where T is symmetric; tests/test_lab.py compares the two.

const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]]; // up, right, down, left
const RAMP = ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"]
  .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const WALL = "#8d9299", INK = "#1f2430", ACCENT = "#d1495b";

export function parse(text) {
  const grid = text.split("\n").map((line) => [...line]);
  const at = grid.map((line) => line.map(() => -1)), cells = [];
  grid.forEach((line, r) => line.forEach((mark, c) => { if (mark !== "X" && mark !== "#") { at[r][c] = cells.length; cells.push([r, c]); } }));
  const next = cells.map(([r, c], s) => MOVES.map(([dr, dc]) => {
    const there = at[r + dr]?.[c + dc];
    return there === undefined || there < 0 ? s : there;
  }));
  return { grid, at, cells, next };
}

export function connected({ cells, next }) {
  const seen = new Set([0]), open = [0];
  while (open.length) for (const s of next[open.pop()]) if (!seen.has(s)) { seen.add(s); open.push(s); }
  return cells.length > 0 && seen.size === cells.length;
}

// Eigenvectors of the symmetric T, largest eigenvalue first: Householder to tridiagonal form, then implicit QL.
export function eigenvectors({ next }) {
  const n = next.length, A = next.map(() => new Float64Array(n)), mirrors = [];
  next.forEach((targets, s) => targets.forEach((t) => { A[s][t] += 0.25; }));
  for (let k = 0; k < n - 2; k++) {
    const v = new Float64Array(n);
    let norm = 0;
    for (let i = k + 1; i < n; i++) { v[i] = A[i][k]; norm += v[i] * v[i]; }
    norm = Math.sqrt(norm);
    if (norm < 1e-300) { mirrors.push(null); continue; }
    v[k + 1] += v[k + 1] < 0 ? -norm : norm;
    let size = 0;
    for (let i = k + 1; i < n; i++) size += v[i] * v[i];
    size = Math.sqrt(size);
    for (let i = k + 1; i < n; i++) v[i] /= size;
    const w = new Float64Array(n);
    let along = 0;
    for (let i = k; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += A[i][j] * v[j];
      w[i] = sum;
      along += v[i] * sum;
    }
    for (let i = k; i < n; i++) w[i] -= along * v[i];
    for (let i = k; i < n; i++) for (let j = k; j < n; j++) A[i][j] -= 2 * (v[i] * w[j] + w[i] * v[j]);
    mirrors.push(v);
  }
  const d = A.map((row, i) => row[i]), e = A.map((row, i) => (i + 1 < n ? A[i + 1][i] : 0));
  const Z = next.map((_, i) => { const row = new Float64Array(n); row[i] = 1; return row; }); // row i will hold vector i
  for (let l = 0; l < n; l++) {
    for (let turn = 0; turn < 60; turn++) {
      let m = l;
      while (m < n - 1 && Math.abs(e[m]) > 1e-16 * (Math.abs(d[m]) + Math.abs(d[m + 1]))) m++;
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]), r = Math.hypot(g, 1);
      g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
      let s = 1, c = 1, p = 0, i = m - 1;
      for (; i >= l; i--) {
        const f = s * e[i], b = c * e[i];
        r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) { d[i + 1] -= p; e[m] = 0; break; }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        const low = Z[i], high = Z[i + 1];
        for (let k = 0; k < n; k++) {
          const z = high[k];
          high[k] = s * low[k] + c * z;
          low[k] = c * low[k] - s * z;
        }
      }
      if (i >= l) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  const order = d.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]);
  return order.map(([value, i]) => {
    const x = Z[i];
    for (let k = mirrors.length - 1; k >= 0; k--) {
      const v = mirrors[k];
      if (!v) continue;
      let along = 0;
      for (let j = k + 1; j < n; j++) along += v[j] * x[j];
      for (let j = k + 1; j < n; j++) x[j] -= 2 * along * v[j];
    }
    const top = Math.max(...x.map(Math.abs));
    const leading = x.find((entry) => Math.abs(entry) >= (1 - 1e-6) * top);
    return { value, vector: leading < 0 ? x.map((entry) => -entry) : x };
  });
}

// The option of an eigenpurpose: value iteration from zero with `terminate` worth 0; −1 where it ends.
export function option({ next }, purpose, gamma) {
  const top = Math.max(...purpose.map(Math.abs)), zero = 1e-9 * top;
  const value = new Float64Array(next.length);
  const q = (s, a) => purpose[next[s][a]] - purpose[s] + gamma * value[next[s][a]];
  for (let moved = true; moved; ) {
    moved = false;
    for (let s = 0; s < next.length; s++) {
      const best = Math.max(0, q(s, 0), q(s, 1), q(s, 2), q(s, 3));
      if (best - value[s] > 4e-16 * top) { value[s] = best; moved = true; }
    }
  }
  return next.map((_, s) => {
    const all = [0, 1, 2, 3].map((a) => q(s, a)), best = Math.max(...all);
    return best > zero ? all.findIndex((each) => each >= best - ((1 - gamma) * zero) / 2) : -1;
  });
}

function tint(share) {
  const place = ((share + 1) / 2) * (RAMP.length - 1), low = Math.min(RAMP.length - 2, Math.max(0, Math.floor(place)));
  return `rgb(${RAMP[low].map((shade, i) => Math.round(shade + (RAMP[low + 1][i] - shade) * (place - low)))})`;
}

function draw(canvas, world, vector, policy, focus) {
  const height = world.grid.length, width = world.grid[0].length, size = Math.floor(340 / Math.max(height, width));
  const sharp = window.devicePixelRatio || 1, brush = canvas.getContext("2d");
  canvas.width = width * size * sharp;
  canvas.height = height * size * sharp;
  canvas.style.width = `${width * size}px`;
  brush.scale(sharp, sharp);
  brush.fillStyle = WALL;
  brush.fillRect(0, 0, width * size, height * size);
  const top = Math.max(...vector.map(Math.abs)) || 1;
  world.cells.forEach(([r, c], s) => {
    brush.fillStyle = tint(vector[s] / top / (policy ? 2.4 : 1));
    brush.fillRect(c * size, r * size, size, size);
    if (!policy) return;
    brush.save();
    brush.translate((c + 0.5) * size, (r + 0.5) * size);
    if (policy[s] < 0) {
      brush.fillStyle = ACCENT;
      brush.strokeStyle = "white";
      brush.beginPath();
      brush.arc(0, 0, size * 0.24, 0, 2 * Math.PI);
      brush.fill();
      brush.stroke();
    } else {
      brush.rotate((policy[s] * Math.PI) / 2);
      brush.scale(size, size);
      brush.fillStyle = INK;
      brush.beginPath();
      for (const [x, y] of [[0, -0.34], [0.26, -0.02], [0.09, -0.02], [0.09, 0.32], [-0.09, 0.32], [-0.09, -0.02], [-0.26, -0.02]]) brush.lineTo(x, y);
      brush.fill();
    }
    brush.restore();
  });
  if (focus) {
    brush.strokeStyle = "#111";
    brush.lineWidth = 2;
    brush.strokeRect(focus[1] * size + 1, focus[0] * size + 1, size - 2, size - 2);
  }
  return size;
}

function render({ model, el }) {
  const make = (tag, text, parent) => { const node = document.createElement(tag); node.textContent = text; parent.append(node); return node; };
  const box = make("div", "", el);
  box.className = "eigenlib-maze-editor";
  box.style.cssText = "font: 14px/1.5 system-ui, sans-serif; max-width: 760px";
  const bar = make("div", "", box);
  bar.style.cssText = "display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; margin-bottom: .4rem";
  const label = make("label", "eigenvector ", bar), slider = make("input", "", label), shown = make("output", "", label);
  Object.assign(slider, { type: "range", min: 0, max: 15, step: 1 });
  slider.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab would take the arrow keys for itself
  const flip = make("button", "flip sign", bar), undo = make("button", "original map", bar);
  const said = make("span", "", bar);
  said.setAttribute("role", "status");
  said.className = "eigenlib-maze-message";
  const row = make("div", "", box);
  row.style.cssText = "display: flex; flex-wrap: wrap; gap: 1rem";
  const canvases = ["eigenvector (click a cell)", "its option"].map((caption) => {
    const figure = make("figure", "", row);
    figure.style.margin = 0;
    make("figcaption", caption, figure);
    return make("canvas", "", figure);
  });
  const [left, right] = canvases;
  left.tabIndex = 0;
  left.style.cursor = "pointer";
  left.setAttribute("role", "application");
  left.setAttribute("aria-label", "Maze. Arrow keys move, the space bar adds or removes a wall.");
  right.setAttribute("role", "img");
  const original = model.get("text");
  let world, pairs, focus = null, size = 1;

  const paint = () => {
    const index = Math.min(model.get("index"), pairs.length - 1), sign = model.get("sign");
    const vector = pairs[index].vector.map((entry) => sign * entry), policy = option(world, vector, model.get("gamma"));
    size = draw(left, world, vector, null, focus);
    draw(right, world, vector, policy, null);
    slider.max = Math.min(15, pairs.length - 1);
    slider.value = index;
    shown.textContent = ` ${index}${sign < 0 ? ", sign flipped" : ""}`;
    const ends = policy.filter((action) => action < 0).length;
    right.setAttribute("aria-label", ends === policy.length ? "No option: it ends everywhere." : `The option ends in ${ends} cells.`);
    el.eigenlib = { text: model.get("text"), values: pairs.map((pair) => pair.value), vector: [...vector], policy };
  };
  const rebuild = () => { world = parse(model.get("text")); pairs = eigenvectors(world); paint(); };
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const toggle = (r, c) => {
    const grid = world.grid.map((line) => [...line]), wall = grid[r][c] === "X" || grid[r][c] === "#";
    if (wall && (r === 0 || c === 0 || r === grid.length - 1 || c === grid[0].length - 1)) { said.textContent = "The outer wall stays."; return; }
    grid[r][c] = wall ? "." : "X";
    const text = grid.map((line) => line.join("")).join("\n");
    if (!connected(parse(text))) { said.textContent = "That wall would cut the maze in two, so it was not built."; return; }
    said.textContent = wall ? "Wall removed." : "Wall built.";
    set("text", text);
  };
  left.addEventListener("click", (event) => {
    const area = left.getBoundingClientRect();
    focus = null;
    toggle(Math.floor((event.clientY - area.top) / size), Math.floor((event.clientX - area.left) / size));
  });
  left.addEventListener("keydown", (event) => {
    const step = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
    if (step < 0 && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    focus = focus ?? [1, 1];
    if (step < 0) { toggle(...focus); return; }
    focus = [Math.min(world.grid.length - 1, Math.max(0, focus[0] + MOVES[step][0])), Math.min(world.grid[0].length - 1, Math.max(0, focus[1] + MOVES[step][1]))];
    paint();
  });
  slider.addEventListener("input", () => { set("index", Number(slider.value)); });
  flip.addEventListener("click", () => { set("sign", -model.get("sign")); });
  undo.addEventListener("click", () => { said.textContent = ""; set("text", original); });
  model.on("change:text", rebuild);
  for (const name of ["index", "sign", "gamma"]) model.on(`change:${name}`, paint);
  rebuild();
}

export default { render };
