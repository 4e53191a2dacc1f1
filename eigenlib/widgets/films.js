// Films of options: a sheet of frames, and over each frame the avatar's way so far, all drawn in the browser: so it plays in
// JupyterLab and in the exported report alike. `el.eigenlib` tells tests what is shown.

const COLUMNS = 10; // frames in a row of a sheet, as in eigenlib/atari/films.py
const TALL = 840; // pixels of the canvas: four for each line of an Atari screen, so that all lines come out alike
const FADE = 40, PALE = 0.45; // a stretch so many steps old is this near to white, and fades no further
const SPEEDS = [["¼ ×", 0.25], ["½ ×", 0.5], ["1 ×", 1], ["2 ×", 2]];
const STYLE = `
.eigenlib-films { font: 14px/1.5 system-ui, sans-serif; max-width: 560px; color: inherit; }
.eigenlib-films .films-bar { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; margin: 0 0 .5rem; }
.eigenlib-films fieldset { border: 0; padding: 0; margin: 0; display: flex; gap: .6rem; align-items: center; min-width: 0; }
.eigenlib-films legend { float: left; padding: 0; margin: 0; }
.eigenlib-films label { display: inline-flex; gap: .35rem; align-items: center; min-width: 0; max-width: 100%; }
.eigenlib-films select { min-width: 0; }
.eigenlib-films select, .eigenlib-films button { font: inherit; color: inherit; background: transparent; border: 1px solid currentColor;
  border-radius: .3rem; padding: .1rem .5rem; min-height: 1.9rem; max-width: 100%; }
.eigenlib-films button { min-width: 5rem; cursor: pointer; }
.eigenlib-films option { background: Canvas; color: CanvasText; }
.eigenlib-films :is(select, button, input):focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.eigenlib-films label.films-step { flex: 1 1 16rem; gap: .5rem; }
.eigenlib-films label.films-step input { flex: 1; min-width: 0; }
.eigenlib-films .films-count { font-variant-numeric: tabular-nums; white-space: nowrap; }
.eigenlib-films canvas { display: block; width: 100%; height: auto; cursor: pointer; background: #000; }
.eigenlib-films p { margin: 0 0 .4rem; min-height: 1.5em; }
.eigenlib-films p.films-key { margin: .3rem 0 0; font-size: .93em; opacity: .85; }`;

// Where the option was until step `now`: paler and thinner the longer ago. place(k) gives x, y of step k on the canvas, unit is
// a line of an Atari screen there, screen() draws the frame again: inside the ring around the avatar nothing hides it.
function drawWay(brush, film, now, place, unit, tints, screen) {
  const here = (step) => film.rooms[step] === film.rooms[now]; // other rooms are not on this screen
  const rimmed = (wide, trace) => {
    for (const [ink, width] of [["white", wide + 2 * unit], [tints[0], wide]]) {
      Object.assign(brush, { strokeStyle: ink, fillStyle: ink, lineWidth: width });
      brush.beginPath();
      trace();
      brush.stroke();
    }
  };
  brush.lineCap = brush.lineJoin = "round";
  for (const rim of [2 * unit, 0]) { // the white rim of all pieces first, or each would cut into the one before
    for (const [first, last] of film.trails) {
      if (!here(first)) continue;
      for (let k = first + 1; k <= Math.min(last, now); k++) {
        const old = Math.min(1, (now - k) / FADE);
        brush.strokeStyle = rim ? "white" : tints[Math.round(old * (tints.length - 1))];
        brush.lineWidth = (2.6 - 1.2 * old) * unit + rim;
        brush.beginPath();
        brush.moveTo(...place(k - 1));
        brush.lineTo(...place(k));
        brush.stroke();
      }
    }
  }
  const at = (step, mark) => { if (step !== undefined && here(step)) mark(...place(step)); };
  at(film.trails[0]?.[0], (x, y) => rimmed(unit, () => { brush.arc(x, y, 2.5 * unit, 0, 2 * Math.PI); brush.fill(); }));
  for (const [step, before] of film.deaths) {
    if (step > now) continue;
    at(before, (x, y) => rimmed(1.6 * unit, () => {
      for (const slope of [1, -1]) { brush.moveTo(x - 4 * unit, y - slope * 4 * unit); brush.lineTo(x + 4 * unit, y + slope * 4 * unit); }
    }));
  }
  at(film.trails.at(-1)?.[1], (x, y) => rimmed(1.2 * unit, () => brush.rect(x - 12 * unit, y - 12 * unit, 24 * unit, 24 * unit)));
  if (!film.path[now]) return;
  const ring = () => brush.arc(...place(now), 10 * unit, 0, 2 * Math.PI);
  brush.save();
  brush.beginPath();
  ring();
  brush.clip();
  screen();
  brush.restore();
  rimmed(1.2 * unit, ring);
}

// Steps from a colour, "#rrggbb", towards white.
function tintsOf(colour) {
  const rgb = [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return Array.from({ length: 12 }, (_, k) => `rgb(${rgb.map((part) => Math.round(part + ((255 - part) * PALE * k) / 11))})`);
}

function render({ model, el }) {
  const make = (tag, text, parent, properties = {}) => {
    const node = document.createElement(tag);
    node.textContent = text; // never as HTML: titles are the user's
    parent.append(node);
    return Object.assign(node, properties);
  };
  const box = make("div", "", el, { className: "eigenlib-films" });
  box.dataset.lmSuppressShortcuts = "true"; // no key pressed in here is a command of JupyterLab
  make("style", STYLE, box);
  const choices = make("div", "", box, { className: "films-bar" });
  const select = (text, entries, parent) => {
    const list = make("select", "", make("label", text, parent));
    for (const [shown, value] of entries) make("option", shown, list, { value });
    return list;
  };
  const games = model.get("games");
  const game = select("game", games.map(({ title }, k) => [title, k]), choices);
  const purpose = select("option", [], choices);
  const group = make("fieldset", "", choices), family = `eigenlib-sign-${Math.random().toString(36).slice(2)}`;
  make("legend", "sign", group);
  const signs = [["+", 1], ["−", -1]].map(([shown, value]) => {
    const label = make("label", "", group), radio = make("input", "", label, { type: "radio", name: family, value });
    radio.setAttribute("aria-label", value > 0 ? "plus" : "minus");
    label.append(shown);
    return radio;
  });
  const said = make("p", "", box);
  said.setAttribute("role", "status");
  const canvas = make("canvas", "", box);
  canvas.setAttribute("role", "img");
  const controls = make("div", "", box, { className: "films-bar" });
  controls.style.marginTop = ".5rem";
  const play = make("button", "Play", controls, { type: "button" });
  const along = make("label", "step", controls, { className: "films-step" });
  const slider = make("input", "", along, { type: "range", min: 0, step: 1 }), count = make("span", "", along, { className: "films-count" });
  count.setAttribute("aria-hidden", "true"); // the slider says it itself
  const speed = select("speed", SPEEDS, controls);
  Object.assign(speed, { value: 0.5, title: "1 × is as fast as the game is played" });
  make("p", "○ now   ● start   □ end   × life lost      Space plays, arrow keys step", box, { className: "films-key" }).style.whiteSpace = "pre-wrap";

  const tints = tintsOf(model.get("colour"));
  let film = null, sheet = null, step = 0, timer = null;
  const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const last = () => film.path.length - 1;

  const paint = () => {
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step} of ${last()}`);
    count.textContent = `${step} of ${last()}`;
    play.textContent = timer === null ? "Play" : "Pause";
    canvas.setAttribute("aria-label", `Screen of ${games[game.value].title} after ${step} of ${last()} decisions of option ${film.name}, the avatar's way so far drawn over it.`);
    el.eigenlib = { game: Number(game.value), purpose: film.purpose, sign: film.sign, step, last: last(), playing: timer !== null, ready: sheet !== null };
    if (!sheet) return;
    const [width, height] = film.size, brush = canvas.getContext("2d");
    const down = Math.max(1, Math.round(TALL / height)), across = Math.max(1, Math.round((down * height * film.shape) / width));
    if (canvas.width !== width * across || canvas.height !== height * down) Object.assign(canvas, { width: width * across, height: height * down });
    brush.imageSmoothingEnabled = false;
    const left = (step % COLUMNS) * width, top = Math.floor(step / COLUMNS) * height;
    const screen = () => brush.drawImage(sheet, left, top, width, height, 0, 0, canvas.width, canvas.height);
    const place = (k) => [(film.path[k][0] + 0.5) * across, (film.path[k][1] + 0.5) * down];
    screen();
    drawWay(brush, film, step, place, canvas.height / 210, tints, screen);
  };
  const go = (to) => { step = Math.min(last(), Math.max(0, to)); paint(); };
  const stop = () => { clearTimeout(timer); timer = null; };
  const tick = () => {
    timer = setTimeout(() => {
      if (sheet && step < last()) step += 1; // a sheet that is still being read must not be missed
      if (step < last()) tick(); else timer = null;
      paint();
    }, 1000 / (film.rate * Number(speed.value)));
  };
  const start = () => { stop(); if (step === last()) step = 0; tick(); paint(); };
  const toggle = () => { if (timer === null) start(); else { stop(); paint(); } };

  // Show the film that the model names, or the nearest there is, with its whole way.
  const show = () => {
    const chosen = games[model.get("game")] ?? games[0], { films } = chosen;
    const same = films.filter((each) => each.purpose === model.get("purpose"));
    const found = same.find((each) => each.sign === model.get("sign")) ?? same[0] ?? films[0];
    if (found === film) return;
    stop();
    film = found;
    game.value = games.indexOf(chosen);
    const numbers = [...new Map(films.map((each) => [each.purpose, each.name.slice(1)]))];
    purpose.replaceChildren();
    for (const [value, shown] of numbers) make("option", shown, purpose, { value });
    purpose.value = film.purpose;
    for (const radio of signs) {
      radio.disabled = !films.some((each) => each.purpose === film.purpose && each.sign === Number(radio.value));
      radio.checked = Number(radio.value) === film.sign;
    }
    said.textContent = film.caption ? `${film.name}: ${film.caption}` : film.name;
    slider.max = step = last();
    sheet = null;
    const picture = new Image(), mine = film;
    picture.onload = () => { if (film === mine) { sheet = picture; paint(); } };
    picture.onerror = () => { if (film === mine) said.textContent = "This film could not be read: run the notebook again."; };
    picture.src = `data:image/png;base64,${film.sheet}`;
    paint();
  };
  const choose = (name, value) => {
    model.set(name, Number(value));
    show();
    for (const each of ["purpose", "sign"]) model.set(each, film[each]); // another game may not have the one before
    model.save_changes();
    if (!calm()) start();
  };

  game.addEventListener("change", () => choose("game", game.value));
  purpose.addEventListener("change", () => choose("purpose", purpose.value));
  for (const radio of signs) radio.addEventListener("change", () => choose("sign", radio.value));
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  play.addEventListener("click", toggle);
  canvas.addEventListener("click", toggle);
  box.addEventListener("keydown", (event) => {
    event.stopPropagation(); // JupyterLab's cells would take the arrows away from the slider
    if (event.key !== " " || event.target.matches("button, select, [type=radio]")) return; // those have their own use for it
    event.preventDefault();
    toggle();
  });
  const names = ["change:game", "change:purpose", "change:sign"];
  for (const name of names) model.on(name, show);
  show();
  return () => { stop(); for (const name of names) model.off(name, show); };
}

export default { render };
