// Diffusion time under the reader's hands (notebook 05, `explore_diffusion`): add options, or place them on tiles, and see how many
// decisions every tile is away, which tiles get lost, and what mean and median make of it. Goals are solved in slices between
// frames, so that every move shows at once.

const explorer = (() => {
  const COUNTS = [0, 2, 4, 8, 16, 32, 64, 128], SLICE = 8, KINDS = ["eigenoptions", "random tiles", "by hand"];
  const many = (number) => (number >= 1e6 ? number.toExponential(1).replace("e+", " × 10^") : Math.round(number).toLocaleString("en"));

  function render(given) {
    const desk = stage.desk(given, "diffusion"), { get, set } = desk;
    const most = () => Math.min(128, 2 * (desk.world.n - 1)), counts = () => kernel.range(most() + 1).filter((k) => k <= 16 || k % 8 === 0);
    desk.choose("options", "kind", KINDS);
    const slider = desk.slide("how many", "count", counts, { wide: true, show: () => number() });
    desk.button("Other tiles", () => set({ kind: "random tiles", seed: get("seed") + 1 }));
    desk.button("Take all away", () => set({ kind: "by hand", placed: [] }));
    desk.mazes();
    // A click places an option that runs to this tile, or takes it away.
    const pick = (s) => { const placed = get("placed").filter((one) => one < desk.world.n), rest = placed.filter((one) => one !== s); set({ kind: "by hand", placed: rest.length < placed.length ? rest : [...placed, s] }); };
    const ofTimes = desk.panel({ tiles: true, pick, slow: true }), ofChange = desk.panel({ tiles: true, pick, slow: true }), ofCurve = desk.panel();
    const number = () => (get("kind") === "by hand" ? placed().length : Math.max(0, Math.min(most(), get("count")))), placed = () => get("placed").filter((s) => s < desk.world.n);
    let purposes, pool, chance, job, curve; // what the walk alone needs; the options shown; mean and median by number of options

    function begin() {
      purposes = kernel.eigenpurposes(desk.world, desk.world.n <= 200 ? desk.world.n : Math.min(desk.world.n, most() / 2 + 2));
      chance = solving([]);
      restart();
    }
    function restart() { curve = new Map(); pool = kernel.eigenoptions(desk.world, get("gamma"), purposes); change(); }
    function change() { job = number() ? solving(options(number())) : chance; }

    function options(count) {
      if (get("kind") === "by hand") return placed().map((s) => kernel.subgoalOption(desk.world, s));
      if (get("kind") === "eigenoptions") return pool(count);
      const random = kernel.generator(Math.max(0, get("seed")));
      return kernel.range(count).map(() => kernel.subgoalOption(desk.world, Math.floor(desk.world.n * random())));
    }
    // Goals one after the other; ends: where the options lead.
    function solving(chosen) {
      const { n, next } = desk.world, ends = new Set(chosen.flatMap((policy) => kernel.range(n).filter((s) => policy[s] >= 0).map((s) => next[4 * s + policy[s]]).filter((t) => policy[t] < 0)));
      return { count: chosen.length, ends: [...ends], time: kernel.hittingTimes(desk.world, chosen), times: [], away: [] };
    }
    function solve(one, until) {
      const { n } = desk.world;
      while (one.times.length < n && performance.now() < until) {
        const times = one.time(one.times.length);
        one.times.push(times);
        one.away.push(times.reduce((sum, time) => sum + time, 0) / Math.max(1, n - 1));
      }
      if (one.times.length < n) return false;
      one.summary ??= n > 1 ? kernel.summary(one.times) : { mean: 0, median: 0 };
      curve.set(one.count, one.summary);
      return true;
    }
    // What is shown first, then the points of the curve.
    function work() {
      const until = performance.now() + SLICE;
      if (!solve(chance, until) || !solve(job, until)) return false;
      for (const count of get("kind") === "by hand" ? [] : COUNTS.filter((k) => k <= most() && !curve.has(k))) {
        if (curve.next?.count !== count || curve.next.kind !== curve) curve.next = Object.assign(solving(options(count)), { count, kind: curve });
        if (!solve(curve.next, until)) return false;
      }
      return true;
    }

    function paint() {
      const done = work(), { world, theme } = desk, solved = job.times.length === world.n && chance.times.length === world.n, least = Math.min(...chance.away) || 1;
      const known = (s) => s < job.away.length && s < chance.away.length, factor = (s) => job.away[s] / (chance.away[s] || 1), lost = solved ? kernel.range(world.n).filter((s) => factor(s) > 2) : [];
      desk.map(ofTimes, (s) => (s < job.away.length ? stage.tint(theme.glow, Math.log10(Math.max(job.away[s], 1) / (least / 20)) / 6) : theme.wall), { dots: job.ends });
      desk.map(ofChange, (s) => (known(s) ? stage.tint(theme.signed, 0.5 + Math.log2(factor(s) || 1) / 12) : theme.wall), { dots: job.ends });
      const points = [...curve].filter(([count]) => count <= most()).sort(([a], [b]) => a - b), top = Math.max(1000, ...points.map(([, both]) => Math.min(both.mean, 1e12))), last = Math.max(2, ...points.map(([count]) => count), number());
      const ticks = kernel.range(13).map((k) => 10 ** k).filter((tick) => tick <= top).filter((_, k, all) => all.length < 7 || k % 2 === 0).map((tick) => [tick, tick < 1e4 ? tick.toLocaleString("en") : `10${[..."⁰¹²³⁴⁵⁶⁷⁸⁹"][Math.log10(tick)] ?? "¹" + [..."⁰¹²"][Math.log10(tick) - 10]}`]);
      const chart = desk.chart(ofCurve, { from: 0, to: last, ticks: [0, Math.round(last / 2), last], label: "options" }, { from: 1, to: top, log: true, ticks });
      for (const [name, colour, beside] of [["mean", theme.pvf, 1.6], ["median", theme.sr, 0.4]]) {
        chart.line(points.map(([count, both]) => [count, both[name]]), colour);
        chart.dots(points.map(([count, both]) => [count, both[name]]), colour, 3);
        if (job.summary) chart.dots([[job.count, job.summary[name]]], colour, 6);
        if (points.length) chart.words(name, [last * 0.98, points.at(-1)[1][name] * beside], colour, "right");
      }
      slider.hidden = get("kind") === "by hand";
      const progress = solved ? "" : ` … ${job.times.length} of ${world.n}`, tiles = lost.length === 1 ? "1 tile is" : `${lost.length} tiles are`;
      ofTimes.say(`decisions to get there${progress}`, `Decisions to every tile with ${job.count} options. Arrow keys choose a tile, space places an option there or takes it away.`);
      ofChange.say(solved ? `blue: sooner than by chance; red: later` : `against chance${progress}`, solved ? `${tiles} more than twice as far away as by chance.` : "");
      ofCurve.say("mean and median", job.summary ? `Mean ${many(job.summary.mean)}, median ${many(job.summary.median)} decisions with ${job.count} options.` : "Still computing.");
      const s = desk.hover, now = job.summary, before = chance.summary, faster = (name) => { const times = before[name] / now[name]; return times >= 1 ? `${times.toFixed(1)} times faster` : `${many(1 / times)} times slower`; };
      if (s !== null && known(s)) desk.say(`${desk.Place(s)}: ${many(job.away[s])} decisions away on average, ${many(chance.away[s])} by chance.`);
      else if (!now || !before) desk.say(`Solving for every goal${progress} …`);
      else desk.say(job.count ? `Median ${many(now.median)} decisions (${many(before.median)} by chance): ${faster("median")}. Mean ${many(now.mean)} (${many(before.mean)}): ${faster("mean")}. ${tiles} more than twice as far away as before.`
        : `The four actions alone: mean ${many(now.mean)}, median ${many(now.median)} decisions between two tiles. Add options, or click a tile to place one.`);
      return { more: !done, solved, count: job.count, mean: now?.mean, median: now?.median, away: [...job.away], lost: lost.length, curve: points };
    }
    return desk.start({ text: begin, gamma: restart, kind: restart, count: change, placed: restart, seed: restart }, paint);
  }
  return { render };
})();
