// Search without a server: window.searchIndex holds {url, place, heading, text}; every word typed must begin a word there.
(() => {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const status = document.querySelector(".search [role=status]"), LONGEST = 8;
  const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const entries = (window.searchIndex ?? []).map((entry) => ({
    ...entry, inPlace: split(entry.place), inHeading: split(entry.heading), inText: split(entry.text),
  }));
  const begins = (words, word) => words.reduce((count, each) => count + each.startsWith(word), 0);

  // A word counts more in a heading than in the text, more if whole, and more the fewer places have it.
  function score(entry, word) {
    const heading = begins(entry.inHeading, word) ? 8 + 4 * entry.inHeading.includes(word) : 0;
    const place = begins(entry.inPlace, word) ? 2 : 0;
    const text = Math.min(begins(entry.inText, word), 5) + 2 * entry.inText.includes(word);
    return heading + place + text;
  }
  function find(query) {
    const words = [...new Set(split(query))];
    if (!words.length) return { words, hits: [] };
    const scores = words.map((word) => entries.map((entry) => score(entry, word)));
    const rare = scores.map((row) => Math.log(1 + entries.length / (1 + row.filter(Boolean).length)));
    const hits = entries
      .map((entry, i) => ({ entry, points: scores.every((row) => row[i]) ? scores.reduce((sum, row, w) => sum + row[i] * rare[w], 0) : 0 }))
      .filter((hit) => hit.points > 0)
      .sort((one, other) => other.points - one.points);
    return { words, hits };
  }

  // Text becomes nodes, never HTML, so whatever stands in a notebook is shown as it is.
  function marked(element, text, words) {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, "giu");  // words hold letters and digits only
    let last = 0;
    for (const match of text.matchAll(pattern)) {
      element.append(text.slice(last, match.index));
      element.append(Object.assign(document.createElement("mark"), { textContent: match[0] }));
      last = match.index + match[0].length;
    }
    element.append(text.slice(last));
    return element;
  }
  function snippet(text, words) {
    const places = words.map((word) => text.search(new RegExp(`(?<![\\p{L}\\p{N}])${word}`, "iu"))).filter((at) => at >= 0);
    const from = Math.max(0, (places.length ? Math.min(...places) : 0) - 50);
    const start = from ? text.indexOf(" ", from) + 1 : 0, end = start + 150;
    return (start ? "… " : "") + (end < text.length ? `${text.slice(start, text.lastIndexOf(" ", end))} …` : text.slice(start));
  }
  const part = (name, text, words) => marked(Object.assign(document.createElement("span"), { className: name }), text, words);

  let active = -1;
  function choose(next) {
    const options = [...list.querySelectorAll("[role=option]")];
    if (!options.length) return;
    active = (next + options.length) % options.length;
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === active)));
    input.setAttribute("aria-activedescendant", options[active].id);
    options[active].scrollIntoView({ block: "nearest" });
  }
  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function show() {
    const { words, hits } = find(input.value);
    list.replaceChildren();
    close();
    status.textContent = words.length ? `${hits.length} found` : "";
    if (!words.length) return;
    for (const [i, { entry }] of hits.slice(0, LONGEST).entries()) {
      const option = Object.assign(document.createElement("a"), { href: entry.url, id: `found-${i}`, tabIndex: -1 });
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.append(part("place", entry.place, words), part("heading", entry.heading, words), part("snippet", snippet(entry.text, words), words));
      list.append(option);
    }
    if (!hits.length) {
      const none = Object.assign(document.createElement("div"), { className: "none", textContent: "Nothing found. Fewer or shorter words find more." });
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.setAttribute("aria-selected", "false");
      list.append(none);
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (hits.length) choose(0);
  }

  input.addEventListener("input", show);
  input.addEventListener("focus", () => { if (input.value) show(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { input.value = ""; show(); input.blur(); return; }
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(active + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      list.querySelector("a[aria-selected=true]")?.click();
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault());  // keep the focus until the click has come
  list.addEventListener("click", close);
  input.addEventListener("blur", close);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
})();
