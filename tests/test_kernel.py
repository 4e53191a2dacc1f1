"""The JavaScript kernel against eigenlib, in Chromium, on random mazes; every test reports all that differs."""

import json
import warnings

import numpy as np
import pytest

from eigenlib.control import optimal_return, q_learning
from eigenlib.diffusion import DiffusionWarning, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption, subgoal_option
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld, MapError, big_rooms, map_names
from eigenlib.paths import ASSETS
from eigenlib.representation import laplacian, learn_successor_representation, relative_error, successor_representation
from tests.mazes import random_maze
from tests.worlds import place_door

pytestmark = pytest.mark.browser
EXACT = 1e-9


@pytest.fixture(scope="module")
def js(browser):
    """js("kernel.f(kernel.parse(x[0]), x[1])", text, number): an expression of what is given, typed arrays made plain."""
    tab = browser.new_page()
    tab.add_script_tag(content=(ASSETS / "kernel.js").read_text(encoding="utf-8"))
    plain = "(key, value) => ArrayBuffer.isView(value) ? [...value] : value === Infinity ? 'inf' : value"

    def evaluate(expression, *given):
        return json.loads(tab.evaluate(f"(x) => JSON.stringify({expression}, {plain})", list(given)))

    yield evaluate
    tab.close()


def mazes(count, seed=0, largest=12, doors=False):
    """Random mazes, symmetric and tiny ones first."""
    rng = np.random.default_rng(seed)
    texts = [".", "..", ".....", "...\n...\n...", "...\n.X.\n...", ".....\n.X.X.\n.....\n.X.X.\n....."]
    while len(texts) < count:
        height, width = rng.integers(2, largest + 1, size=2)
        text = random_maze(rng, height, width, rng.uniform(0, 0.4))
        if doors:
            grid = np.array([list(line) for line in text.splitlines()])
            for cell in rng.integers([height, width], size=(4, 2)):
                place_door(grid, tuple(cell), int(rng.integers(4)))
            text = "\n".join(map("".join, grid))
        texts.append(text)
    return [GridWorld.from_text(text) for text in texts]


def large():
    return [
        GridWorld.from_text("\n".join(["." * 20] * 20)),
        GridWorld.from_text("." * 200),
        big_rooms(4, 5),
        *(GridWorld.named(name) for name in map_names()),
        *(
            GridWorld.from_text(random_maze(np.random.default_rng(seed), 19, 23, 0.1 + 0.05 * seed))
            for seed in range(5)
        ),
    ]


def symmetric(worlds):
    return [world for world in worlds if not set("^>v<") & set(world.text)]


def gap(found, expected, each=False):
    """The largest difference as a share of the largest number, or of each number itself; ∞ where shapes differ."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    if found.shape != expected.shape:
        return np.inf
    differs = found != expected  # not so where both are infinite
    scale = np.abs(expected[differs]) if each else np.abs(expected).max(initial=0.0)
    return float((np.abs(found[differs] - expected[differs]) / scale).max(initial=0.0))


def none_differs(gaps, allowed=EXACT):
    """gaps: (what, world, gap) triples; fails with all that are too wide."""
    wide = [f"{what}: {size:.1e} in\n{world.text}" for what, world, size in gaps if not size <= allowed]
    assert not wide, f"{len(wide)} of {len(gaps)} differ\n" + "\n\n".join(wide[:8])


# --- exact ------------------------------------------------------------------------------------------------------------


def test_worlds_and_their_matrices(js):
    gaps = []
    for world in mazes(40) + mazes(40, seed=1, doors=True):
        found = js(
            """((w) => ({ cells: w.cells, next: w.next, one: kernel.connected(w), T: kernel.transitions(w),
            W: kernel.adjacency(w), loops: kernel.adjacency(w, true),
            L: kernel.laplacian(kernel.adjacency(w)) }))(kernel.parse(x[0]))""",
            world.text,
        )
        assert found["one"]
        gaps += [
            ("cells", world, gap(found["cells"], world.cells)),
            ("next", world, gap(found["next"], world.next_state.ravel())),
            ("T", world, gap(found["T"], world.transition_matrix())),
            ("W", world, gap(found["W"], world.adjacency())),
            ("W with loops", world, gap(found["loops"], world.adjacency(self_loops=True))),
        ]
        if world.adjacency().sum(axis=1).min() > 0:
            gaps.append(("𝓛", world, gap(found["L"], laplacian(world.adjacency()))))
    none_differs(gaps)


def test_letters_and_refusals(js):
    assert js("kernel.parse(x[0]).landmarks", "A.B\nX.X") == {"A": 0, "B": 2}
    assert js("kernel.connected(kernel.parse(x[0]))", ".X.") is False
    for text in ("", "XX", "..\n...", ".?.", "A.A", "X>X\n..."):
        with pytest.raises(MapError):
            GridWorld.from_text(text)
        words = js(
            "(() => { try { kernel.parse(x[0]); return ''; } catch (problem) { return problem.message; } })()", text
        )
        assert words.endswith((".", "all lines equally long.")), text
        assert len(words) > 20, text


def test_successor_representation(js):
    gaps = []
    for world in mazes(30) + mazes(30, seed=2, doors=True) + large()[:3]:
        for gamma in (0.0, 0.5, 0.9, 0.999):
            exact = successor_representation(world.transition_matrix(), gamma)
            states = [0, world.n_states // 2, world.n_states - 1]
            found = js("x[2].map(kernel.successors(kernel.parse(x[0]), x[1]))", world.text, gamma, states)
            gaps += [(f"Ψ at γ = {gamma}", world, gap(found, exact[states]))]
    none_differs(gaps)


def test_eigenvectors(js):
    """Values, canonical basis, signs: of T and 𝓛 whole, and the first nine of T, on large maps by Lanczos."""
    gaps = []
    for world in mazes(60) + mazes(20, seed=3, largest=7):
        T, count = world.transition_matrix(), world.n_states
        for what, matrix, first in (
            ("T", T, "largest"),
            ("𝓛", laplacian(world.adjacency(self_loops=True)), "smallest"),
        ):
            source = "kernel.transitions(w)" if what == "T" else "kernel.laplacian(kernel.adjacency(w, true))"
            found = js(
                f"((w) => kernel.extractEigenpurposes({source}, w.n, x[1]))(kernel.parse(x[0]))", world.text, first
            )
            gaps += compared(what, world, found, extract_eigenpurposes(matrix, count, first))
    none_differs(gaps)


def test_leading_eigenvectors_of_large_maps(js):
    gaps, thin = [], 0
    for world in large():
        found = js("kernel.eigenpurposes(kernel.parse(x[0]), 9)", world.text)
        gaps += compared("leading", world, found, extract_eigenpurposes(world.transition_matrix(), 9))
        thin += (
            js("kernel.leadingEigenpairs(kernel.parse(x[0]), 9) !== null", world.text) if world.n_states > 150 else 0
        )
    none_differs(gaps)
    assert thin >= 8, "the fast way is hardly ever taken"


def test_values_that_rounding_cannot_tell_apart_share_a_space(js):
    """Nearer than 1e-8 of their distance from the first: one canonical basis, here as there; a little further: two vectors."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
    for near, allowed in ((2e-9, EXACT), (1e-6, EXACT)):
        matrix = (basis * [2, 1.5, 0.5, 0.5 + near, 0.1, 0, -0.1, -0.2, -0.3, -0.4, -0.5, -0.6]) @ basis.T
        matrix = (matrix + matrix.T) / 2
        found = js("kernel.extractEigenpurposes(x[0].map((row) => Float64Array.from(row)))", matrix.tolist())
        expected = extract_eigenpurposes(matrix).vectors
        assert gap(np.array([pair["vector"] for pair in found]).T, expected) <= allowed, near


def compared(what, world, found, exact):
    # Rounding turns two vectors into each other by about 1e-15 / the distance of their eigenvalues, on either side.
    apart = np.abs(np.diff(exact.values)) if world.n_states > 1 else np.array([1.0])
    near = apart[apart > 1e-12].min(initial=1.0)
    vectors = np.array([pair["vector"] for pair in found]).T
    return [
        (f"eigenvalues ({what})", world, gap([pair["value"] for pair in found], exact.values)),
        (f"eigenvectors ({what})", world, gap(vectors, exact.vectors) * min(1.0, near / 1e-4)),
    ]


def test_options(js):
    gaps = []
    for world in mazes(40) + mazes(40, seed=4, doors=True) + large()[:2]:
        rng = np.random.default_rng(world.n_states)
        purposes = [
            rng.standard_normal(world.n_states),
            np.ones(world.n_states),
            rng.integers(-1, 2, world.n_states) * 1.0,
        ]
        if symmetric([world]):
            purposes += [*extract_eigenpurposes(world.transition_matrix(), min(4, world.n_states)).vectors.T]
        for gamma in (0.0, 0.9, 0.99):
            for purpose in purposes:
                found = js("kernel.eigenoption(kernel.parse(x[0]), x[1], x[2])", world.text, purpose.tolist(), gamma)
                gaps.append(
                    (f"option at γ = {gamma}", world, gap(found, learn_eigenoption(world, purpose, gamma).policy))
                )
        found = js("kernel.subgoalOption(kernel.parse(x[0]), 0)", world.text)
        same = found == subgoal_option(world, 0).policy.tolist() or "".join(world.text.split()).strip(
            ".X"
        )  # doors: surely
        gaps.append(("subgoal option", world, 0.0 if same else 1.0))
    none_differs(gaps, 0.0)


def test_diffusion_time(js):
    """Every time of every pair, however long: with no options, eigenoptions, subgoals; with one-way doors infinite ones."""
    gaps, longest = [], 0.0
    for world in (
        mazes(25, largest=9)[1:] + mazes(25, seed=5, largest=8, doors=True)[1:] + [GridWorld.named("four_rooms")]
    ):
        purposes = extract_eigenpurposes(world.transition_matrix(), min(3, world.n_states))
        sets = [[], [subgoal_option(world, 0)], discover_eigenoptions(world, purposes)]
        for options in sets:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DiffusionWarning)
                exact = diffusion_time(world, options, matrix=True)
            policies = [option.policy.tolist() for option in options]
            found = js(
                "((w) => ({ matrix: kernel.range(w.n).map(kernel.hittingTimes(w, x[1])), ...kernel.diffusionTime(w, x[1]) }))"
                "(kernel.parse(x[0]))",
                world.text,
                policies,
            )
            longest = max(longest, exact.condition)
            allowed = 1.0 if exact.condition < 1e5 else 1e3  # of EXACT
            for name, expected in (("matrix", exact.matrix.T), ("mean", exact.mean), ("median", exact.median)):
                gaps.append((f"{name}, {len(options)} options", world, gap(found[name], expected, each=True) / allowed))
    none_differs(gaps)
    assert longest > 1e5


def test_eigenoptions_of_a_map_in_order(js):
    world = GridWorld.named("four_rooms")
    expected = discover_eigenoptions(world, extract_eigenpurposes(world.transition_matrix()), 8)
    assert js("kernel.eigenoptions(kernel.parse(x[0]), 8)", world.text) == [one.policy.tolist() for one in expected]


# --- sampled: within four standard errors -------------------------------------------------------------------------------


def apart(ours, theirs):
    """How many standard errors of their difference two samples' means are apart, (runs, …) each."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    error = np.sqrt(ours.var(axis=0, ddof=1) / len(ours) + theirs.var(axis=0, ddof=1) / len(theirs))
    return np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(error, 1e-12)


def test_random_numbers_are_uniform_and_independent(js):
    x = np.array(js("((r) => Array.from({ length: 200000 }, r))(kernel.generator(7))"))
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(np.histogram(x, 20, (0, 1))[0] - 10_000).max() < 4 * np.sqrt(10_000)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(len(x))
    first = np.array([js("kernel.generator(x[0])()", seed) for seed in range(400)])
    assert abs(first.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)


def test_walks_are_where_t_says(js):
    world, steps, walks = GridWorld.from_text("...\n.Xv\n..."), 7, 20_000
    ends = js(
        "((w, r) => Array.from({ length: x[2] }, () => kernel.walk(w, 0, x[1], r)[x[1]]))"
        "(kernel.parse(x[0]), kernel.generator(3))",
        world.text,
        steps,
        walks,
    )
    chance = np.linalg.matrix_power(world.transition_matrix(), steps)[0]
    found = np.bincount(ends, minlength=world.n_states) / walks
    assert (np.abs(found - chance) <= 4 * np.sqrt(chance * (1 - chance) / walks) + 1e-12).all()


@pytest.mark.parametrize("start", ["random", "fixed"])
def test_td_learns_as_the_library_does(js, start):
    """Error of Ψ̂ and its first row after some episodes, over many runs."""
    world, runs, episodes = GridWorld.from_text("......\n.XX.X.\n......\n.X...."), 200, 30
    exact = successor_representation(world.transition_matrix(), 0.9)
    found = js(
        """Array.from({ length: x[1] }, (_, seed) => { const w = kernel.parse(x[0]);
        return kernel.learnSuccessors(w, kernel.range(w.n).map(() => new Float64Array(w.n)), x[2],
          { steps: 40, stepSize: 0.2, gamma: 0.9, start: x[3], random: kernel.generator(seed) }); })""",
        world.text,
        runs,
        episodes,
        0 if start == "fixed" else -1,
    )
    theirs = learn_successor_representation(world, episodes, 40, 0.2, 0.9, start, seeds=range(runs))
    assert apart(relative_error(np.array(found), exact), relative_error(theirs, exact)) < 4
    assert apart(np.array(found)[:, 0], theirs[:, 0]).max() < 4.5  # the largest of many
    assert js("kernel.relativeError(x[0], x[1])", found[0], exact.tolist()) == pytest.approx(
        float(relative_error(np.array(found[0]), exact))
    )


def test_q_learning_learns_and_earns_as_the_library_does(js):
    world, runs, marks = GridWorld.named("four_rooms"), 200, [5, 20, 60]
    options = discover_eigenoptions(world, extract_eigenpurposes(world.transition_matrix(), 5), 4)
    for given in ([], options):
        found = js(
            """Array.from({ length: x[2] }, (_, seed) => {
              const w = kernel.parse(x[0]), one = kernel.qLearner(w, x[1], 0, w.n - 1, { random: kernel.generator(seed) });
              const outcomes = x[3].flatMap((mark, k) => {
                for (let done = x[3][k - 1] ?? 0; done < mark; done++) one.episode();
                return Object.values(one.outcome()); });
              return [...outcomes, ...one.q]; })""",
            world.text,
            [option.policy.tolist() for option in given],
            runs,
            marks,
        )
        theirs, at = q_learning(world, given, 0, world.n_states - 1, 60, runs, rng=1), np.array(marks) - 1
        outcomes = np.stack([theirs.returns[:, at], theirs.reached[:, at]], axis=-1).reshape(runs, -1)
        assert apart(np.array(found)[:, : 2 * len(marks)], outcomes).max() < 4
        assert apart(np.array(found)[:, 2 * len(marks) :].max(axis=1), theirs.q.max(axis=(1, 2))) < 4
        assert apart(np.array(found)[:, 2 * len(marks) :].mean(axis=1), theirs.q.mean(axis=(1, 2))) < 4
    best = js(
        """((one) => { for (let k = 0; k < 4000; k++) one.episode(); return one.outcome().earned; })
        (kernel.qLearner(kernel.parse(x[0]), x[1], 0, x[2], { random: kernel.generator(5) }))""",
        world.text,
        [option.policy.tolist() for option in options],
        world.n_states - 1,
    )
    assert best == pytest.approx(optimal_return(world, 0, world.n_states - 1))
