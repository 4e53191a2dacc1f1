"""What axe-core, the usual checker of accessibility, objects to on a page."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
THIN = """() => {
  const seen = new Set();
  for (const span of document.querySelectorAll(".highlight span[class]"))
    if (seen.has(span.className)) span.replaceWith(...span.childNodes); else seen.add(span.className);
  for (const formula of [...document.querySelectorAll("mjx-container:not([tabindex])")].slice(3)) formula.remove();
}"""


def objections(tab):
    """What axe-core calls serious or critical on a page as it stands."""
    tab.evaluate(THIN)
    tab.evaluate(AXE)
    found = tab.evaluate("axe.run({resultTypes: ['violations'], preload: false})")["violations"]
    return [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
