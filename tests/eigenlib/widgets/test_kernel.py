"""The JavaScript kernel against eigenlib, in Chromium, on random mazes; every test reports all that differs."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from mazes import random_maze
from worlds import place_door

from eigenlib import widgets
from eigenlib.comparing import relative_error
from eigenlib.control import q_learning
from eigenlib.diffusion import DiffusionWarning, diffusion_time
from eigenlib.eigenoptions import discover_eigenoptions, learn_eigenoption
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld, MapError, map_names
from eigenlib.large.rooms import big_rooms
from eigenlib.options import subgoal_option
from eigenlib.representation import laplacian, learn_successor_representation, successor_representation

pytestmark = pytest.mark.browser
EXACT = 1e-9
KERNEL = Path(widgets.__file__).with_name("kernel.js")


@pytest.fixture(scope="module")
def js(browser):
    """js("kernel.f(kernel.parse(x[0]), x[1])", text, number): an expression of what is given, typed arrays made plain."""
    tab = browser.new_page()
    tab.add_script_tag(content=KERNEL.read_text(encoding="utf-8"))
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


def test_eigenvectors_of_unsymmetric_matrices(js):
    """Learned Ψ̂, chains with one-way doors, and noise: values with their complex pairs, and the first vectors."""
    gaps, rng, pairs = [], np.random.default_rng(0), 0
    worlds = mazes(24, largest=9)[3:] + mazes(24, seed=6, largest=7, doors=True)[3:]
    for k, world in enumerate(worlds):
        n = world.n_states
        learned = learn_successor_representation(world, 40, 50, rng=k)
        noise = rng.standard_normal((n, n))
        for what, matrix in (("Ψ̂", learned), ("doors", world.transition_matrix()), ("noise", noise)):
            expected = np.linalg.eigvals(matrix)
            found = js("kernel.eigenvalues(x[0])", matrix.tolist())
            off = np.abs(expected[:, None] - np.array(found) @ [1, 1j])  # one to one: the nearest, in either direction
            clear = np.linalg.cond(np.linalg.eig(matrix)[1]) < 1e4  # else rounding moves the values themselves
            gaps.append(
                (f"eigenvalues ({what})", world, max(off.min(0).max(), off.min(1).max()) / 10 if clear else 0.0)
            )
            pairs += int((expected.imag > 1e-6).sum())
            exact = extract_eigenpurposes(matrix)
            leading = min(4, n)
            apart = np.abs(
                exact.values[:leading, None] - exact.values
            )  # vectors of values near others are lost in rounding
            if clear and np.where(apart > 1e-10, apart, 1.0).min() > 1e-3:
                vectors = np.array(
                    [one["vector"] for one in js("kernel.generalEigenpurposes(x[0], 4)", matrix.tolist())]
                ).T
                gaps.append((f"vectors ({what})", world, gap(vectors, exact.vectors[:, :leading])))
    none_differs(gaps)
    for matrix in ([[3.0]], [[2.0, 0], [0, 2]], [[0.0, 0], [0, 0]]):
        vectors = [one["vector"] for one in js("kernel.generalEigenpurposes(x[0], x[0].length)", matrix)]
        np.testing.assert_allclose(vectors, np.eye(len(matrix)), atol=1e-12)
    assert pairs > 100
    assert len(gaps) > 1.5 * 3 * len(worlds), "hardly any vector was compared"


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
    assert js("kernel.eigenoptions(kernel.parse(x[0]))(8)", world.text) == [one.policy.tolist() for one in expected]


# --- sampled: the same random numbers, so the same runs -------------------------------------------------------------------


def test_random_numbers_are_the_librarys(js):
    """splitmix64 from numpy's SeedSequence, written out with Python's whole numbers."""

    def draws(seed, count):
        stream = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        for _ in range(count):
            stream = (stream + 0x9E3779B97F4A7C15) % 2**64
            z = (stream ^ (stream >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
            yield ((z ^ (z >> 31)) >> 32) / 2**32

    for seed in (0, 1, 7, 12345, 2**31, 2**32 - 1):
        found = js("((r) => Array.from({ length: 300 }, r))(kernel.generator(x[0]))", seed)
        assert found == list(draws(seed, 300)), seed


def test_walks_are_where_t_says(js):
    """In distribution, within four standard errors."""
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


def test_td_learns_what_the_library_learns(js):
    gaps = []
    for seed, world in enumerate(mazes(12) + mazes(12, seed=7, doors=True)):
        for start, state in (("random", -1), ("fixed", 0)):
            found = js(
                """((w) => kernel.learnSuccessors(w, kernel.range(w.n).map(() => new Float64Array(w.n)), 30,
                { steps: 40, stepSize: 0.2, gamma: 0.9, start: x[1], random: kernel.generator(x[2]) }))(kernel.parse(x[0]))""",
                world.text,
                state,
                seed,
            )
            expected = learn_successor_representation(world, 30, 40, 0.2, 0.9, start, seed)
            gaps.append((f"Ψ̂, {start} start", world, gap(found, expected)))
            exact = successor_representation(world.transition_matrix(), 0.9)
            error = js("kernel.relativeError(x[0], x[1])", found, exact.tolist())
            gaps.append(("error", world, abs(error - relative_error(expected, exact))))
    none_differs(gaps)


def test_q_learning_learns_and_earns_what_the_library_does(js):
    gaps = []
    for seed, world in enumerate([GridWorld.named("four_rooms"), *mazes(12)[3:], *mazes(12, seed=8, doors=True)[3:]]):
        purposes = extract_eigenpurposes(world.transition_matrix(), min(3, world.n_states))
        for options in ([], discover_eigenoptions(world, purposes)):
            expected = q_learning(world, options, 0, world.n_states - 1, 60, 1, rng=seed)
            found = js(
                """((one) => ({ outcomes: kernel.range(60).map(() => { one.episode(); return one.outcome(); }), q: one.q }))
                (((w) => kernel.qLearner(w, x[1], 0, w.n - 1, { random: kernel.generator(x[2]) }))(kernel.parse(x[0])))""",
                world.text,
                [option.policy.tolist() for option in options],
                seed,
            )
            earned, reached = (np.array([one[name] for one in found["outcomes"]]) for name in ("earned", "reached"))
            gaps += [
                ("Q", world, gap(found["q"], expected.q[0].ravel())),
                ("earned", world, gap(earned, expected.returns[0])),
                ("reached", world, gap(reached, expected.reached[0])),
            ]
    none_differs(gaps)
