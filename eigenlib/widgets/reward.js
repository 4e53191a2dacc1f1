// Earning, live (notebook 06, `explore_reward`): Q-learning with the four actions alone and with options too, eight learners each.
// Episodes are run in slices between frames.

const explorer = (() => {
  const RUNS = 8, SLICE = 8, STOPS = [...kernel.range(31), ...kernel.range(14).map((k) => 35 + 5 * k), ...kernel.range(40).map((k) => 110 + 10 * k)];

  function render(given) {
    const desk = stage.desk(given, "reward"), { get, set } = desk, most = () => Math.min(64, 2 * (desk.world.n - 1));
    const counts = () => kernel.range(most() + 1).filter((k) => k <= 16 || k % 8 === 0), count = () => Math.max(0, Math.min(most(), get("count")));
    desk.play("episodes", STOPS, 60);
    desk.slide("episodes", "episodes", STOPS, { wide: true, show: (all) => (done() < all ? `${done()} of ${all}` : all) });
    desk.slide("options", "count", counts);
    desk.slide("γ", "gamma", stage.GAMMAS, { show: stage.short });
    desk.choose("a click moves", "tool", ["goal", "start"]);
    desk.button("Other learners", () => set({ seed: get("seed") + 1 }));
    desk.mazes();
    const inside = (s) => Math.max(0, Math.min(desk.world.n - 1, s)), start = () => inside(get("start")), goal = () => { const g = inside(get("goal")); return g === start() && desk.world.n > 1 ? (g + 1) % desk.world.n : g; };
    const pick = (s) => { if (s !== start() && s !== goal()) set({ [get("tool")]: s }); };
    const panels = kernel.range(2).map(() => desk.panel({ tiles: true, pick, at: () => inside(get(get("tool"))) })), ofCurve = desk.panel();
    let groups, pool, options;
    const done = () => groups[1].done;

    function begin() { pool = kernel.eigenoptions(desk.world, get("gamma")); arm(); }
    function arm() { options = pool(count()); restart(); }
    function restart() {
      groups = [[], options].map((used, which) => ({
        done: 0, curve: [],
        learners: kernel.range(RUNS).map((k) => kernel.qLearner(desk.world, used, start(), goal(), { gamma: get("gamma"), random: kernel.generator((1000 * Math.max(0, get("seed")) + 2 * k + which) % 2 ** 31) })),
      }));
    }
    const move = () => { if (get("episodes") < done()) restart(); };

    // What the greedy policy would do is looked at when a stop has come.
    function judge(group) {
      if (!STOPS.includes(group.done) || group.curve.at(-1)?.[0] === group.done) return;
      const outcomes = group.learners.map((learner) => learner.outcome()), mean = (name) => outcomes.reduce((sum, one) => sum + one[name], 0) / RUNS;
      group.curve.push([group.done, mean("reached"), mean("earned")]);
    }
    function learn() {
      const until = performance.now() + SLICE, target = get("episodes");
      for (;;) {
        groups.forEach(judge);
        const group = groups[groups[0].done <= groups[1].done ? 0 : 1];
        if (group.done >= target) return true;
        if (performance.now() > until) return false;
        for (const learner of group.learners) learner.episode();
        group.done++;
      }
    }

    function paint() {
      const finished = learn(), { world, theme } = desk, names = ["four actions", `with ${options.length} option${options.length === 1 ? "" : "s"}`], colours = [theme.grey, theme.sr];
      groups.forEach((group, which) => {
        const { q } = group.learners[0], best = kernel.range(world.n).map((s) => Math.max(...q.subarray(4 * s, 4 * s + 4)));
        const policy = best.map((top, s) => (top > 0 && s !== goal() ? q.subarray(4 * s, 4 * s + 4).indexOf(top) : -2)), known = best.filter((value) => value > 0).length;
        desk.map(panels[which], stage.glow(best, theme, 1.2, 5), { policy, letters: { S: start(), G: goal() } });
        panels[which].say(`${names[which]}: ${known} tile${known === 1 ? "" : "s"} known`, `One of ${RUNS} learners, ${names[which]}: ${known} of ${world.n} tiles have a value. Arrow keys move the ${get("tool")}.`);
      });
      const last = Math.max(30, get("episodes")), chart = desk.chart(ofCurve, { from: 0, to: last, ticks: [0, Math.round(last / 2), last], label: "episodes" }, { from: 0, to: 1, ticks: [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]] });
      groups.forEach((group, which) => {
        chart.line(group.curve, colours[which]);
        chart.dots(group.curve.slice(-1), colours[which], 5);
      });
      chart.words(names[1], [last, 0.14], colours[1], "right");
      chart.words(names[0], [last, 0.05], colours[0], "right");
      const [plain, helped] = groups.map((group) => group.curve.at(-1) ?? [0, 0, 0]), share = (chance) => `${(100 * chance).toFixed(0)} %`;
      ofCurve.say("chance to reach G, greedily", `After ${done()} episodes the greedy policy reaches the goal in ${share(plain[1])} with four actions, ${share(helped[1])} with options.`);
      const s = desk.hover;
      desk.say(s !== null && s < world.n ? `${desk.Place(s)}: worth ${groups.map((group, which) => `${Math.max(...group.learners[0].q.subarray(4 * s, 4 * s + 4)).toFixed(3)} ${names[which]}`).join(", ")}.`
        : `After ${done()} episodes the greedy policy reaches G in ${share(plain[1])} of all tries with four actions, in ${share(helped[1])} ${names[1]}; it earns ${plain[2].toFixed(3)} and ${helped[2].toFixed(3)}.`);
      return { more: !finished, episodes: done(), count: options.length, start: start(), goal: goal(), plain: groups[0].curve, helped: groups[1].curve };
    }
    return desk.start({ text: begin, gamma: begin, count: arm, start: restart, goal: restart, seed: restart, episodes: move, tool: () => {} }, paint);
  }
  return { render };
})();
