// Wide formulas scroll inside their own line instead of widening the page; keyboards can reach them.
window.addEventListener("load", () => {
  for (const wide of document.querySelectorAll("mjx-container[display='true'], .output pre, .highlight pre, .output_png")) {
    if (wide.scrollWidth > wide.clientWidth + 1) wide.tabIndex = 0;
  }
});

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
  import(URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" })))
    .then((module) => module.default.render({ model, el: place }))
    .catch((problem) => { place.textContent = `This widget could not start: ${problem}`; });
}
