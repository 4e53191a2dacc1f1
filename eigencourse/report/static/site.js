// Wide formulas scroll inside their own line instead of widening the page; keyboards can reach them.
function reachable() {
  for (const wide of document.querySelectorAll("mjx-container[display='true'], .output pre, .highlight pre, .output_png, .output_html, table")) {
    if (wide.scrollWidth > wide.clientWidth + 1) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
  }
}
window.addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reachable));
window.addEventListener("resize", reachable);

// Light or dark: as the system says, until the reader says otherwise. Some browsers keep nothing for pages opened from disk.
const theme = document.getElementById("theme"), root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const tell = () => theme.setAttribute("aria-pressed", String(dark()));
theme.addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("eigenlib-theme", root.dataset.theme); } catch { /* then it holds for this page */ }
  tell();
});
system.addEventListener("change", tell);
tell();

// The table of contents is open beside a wide text and folded above a narrow one; it marks where the reader is.
const toc = document.querySelector(".toc");
if (toc) {
  const wide = matchMedia("(min-width: 1100px)");
  wide.addEventListener("change", () => { toc.open = wide.matches; });
  toc.addEventListener("click", (event) => { if (event.target.closest("a") && !wide.matches) toc.open = false; });
  const links = new Map([...toc.querySelectorAll("a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const headings = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const mark = () => {
    const here = headings.filter((heading) => heading.getBoundingClientRect().top < 140).at(-1);
    for (const link of links.values()) link.removeAttribute("aria-current");
    if (!here) return;
    const link = links.get(here.id), box = toc.getBoundingClientRect(), place = link.getBoundingClientRect();
    link.setAttribute("aria-current", "true");
    if (place.top < box.top + 40 || place.bottom > box.bottom - 10) toc.scrollTop += place.top - box.top - box.height / 2;
  };
  let waiting = false;
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; mark(); }); } };
  addEventListener("scroll", soon, { passive: true });
  mark();
}

// A link such as claims.html#only-holds chooses that filter.
const chosen = document.querySelector(`.filter input[id="${CSS.escape(location.hash.slice(1))}"]`);
if (chosen) { chosen.checked = true; scrollTo(0, 0); }

// Code cells can be copied, by mouse and by keyboard.
async function copy(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const worked = document.execCommand("copy");
  area.remove();
  return worked;
}
for (const cell of document.querySelectorAll(".input_area")) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
  const source = cell.querySelector("pre").textContent.trimEnd();
  button.addEventListener("click", async () => {
    button.textContent = (await copy(source)) ? "Copied" : "Not copied";
    button.focus();
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  cell.append(button);
}

// Anywidgets keep working without a kernel: their own module, run on the state they were saved with.
for (const place of document.querySelectorAll(".anywidget")) {
  const state = JSON.parse(place.querySelector("script").textContent), listeners = {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      for (const listener of listeners[`change:${name}`] ?? []) listener();
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: () => {},
    save_changes: () => {},
  };
  place.model = model;
  import(URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" })))
    .then((module) => module.default.render({ model, el: place }))
    .catch((problem) => { place.textContent = `This widget could not start: ${problem}`; });
}
