// Wide formulas scroll inside their own line instead of widening the page; keyboards can reach them.
window.addEventListener("load", () => {
  for (const wide of document.querySelectorAll("mjx-container[display='true'], .output pre, .highlight pre, .output_png")) {
    if (wide.scrollWidth > wide.clientWidth + 1) wide.tabIndex = 0;
  }
});
