"""Sparse eigenpurposes against dense ones: values, residuals and spaces, never single vectors (§3.2)."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mazes import random_maze
from scipy import sparse
from worlds import place_door, worlds

from eigenlib.comparing import alignment, eigenspaces, principal_cosines, residuals
from eigenlib.eigenpurposes import Eigenpurposes, extract_eigenpurposes, sr_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.large import factors, spectrum
from eigenlib.large.rooms import big_rooms
from eigenlib.large.spectrum import SpectrumWarning
from eigenlib.representation import laplacian, successor_representation


def chain(world):
    return world.transition_matrix(sparse_result=True)


def circle(size: int) -> str:
    """Doors in a circle, all one way round: T's eigenvalues are ¾ + ¼·e^{iθ}, nearly all of them complex."""
    inner = "\n".join("^" + "X" * (size - 2) + "v" for _ in range(size - 2))
    return ">" * (size - 1) + "v\n" + inner + "\n^" + "<" * (size - 1)


def with_doors(text: str, doors: int, seed: int = 0) -> str:
    rng, grid = np.random.default_rng(seed), np.array([list(line) for line in text.split("\n")])
    for _ in range(doors):
        place_door(grid, tuple(int(rng.integers(size)) for size in grid.shape), int(rng.integers(4)))
    return "\n".join("".join(row) for row in grid)


def assert_sparse_is_dense(T, count, gamma=None):
    """Values and residuals to 1e-8. A complex plane that `count` cuts is cut in both, with the same residual."""
    if gamma is None:
        thin, full = (extract_eigenpurposes(T, count, method=method) for method in ("sparse", "dense"))
    else:
        thin, full = (sr_eigenpurposes(T, gamma, count, method=method) for method in ("sparse", "dense"))
    np.testing.assert_allclose(thin.values, full.values, rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(thin.vectors, axis=0), 1, atol=1e-12)
    assert (residuals(T, thin, gamma) <= residuals(T, full, gamma) + 1e-8).all()
    return thin, full


# --- sparse is dense ------------------------------------------------------------------------------------------------


@given(worlds(largest=12), st.sampled_from([None, 0.5, 0.9, 0.99]), st.integers(1, 12))
@example(GridWorld.from_text(circle(12)), None, 7)
@example(GridWorld.from_text(circle(12)), 0.99, 8)
@example(GridWorld.from_text("\n".join(["." * 12] * 12)), 0.9, 3)  # a square: λ₂ = λ₃
@settings(max_examples=150, deadline=None)
def test_agrees_on_random_worlds(world, gamma, count):
    assert_sparse_is_dense(chain(world), min(count, world.n_states), gamma)


@pytest.mark.parametrize("doors", [0, 3, 40])
def test_agrees_on_larger_worlds(doors):
    """A few hundred to two thousand states, where the sparse path is what it is for."""
    rng = np.random.default_rng(doors)
    for size, gammas in ((20, (None, 0.9)), (30, (0.5,)) if doors else (46, (0.9,))):
        world = GridWorld.from_text(with_doors(random_maze(rng, size, size, 0.1), doors), slip=0.2)
        for gamma in gammas:
            thin, _ = assert_sparse_is_dense(chain(world), 10, gamma)
            if not doors:
                assert np.abs(thin.vectors.T @ thin.vectors - np.eye(10)).max() < 1e-10


def test_agrees_on_two_thousand_states_with_a_one_way_door():
    grid = big_rooms(6, 7).text.split("\n")
    grid[3] = grid[3][:4] + ">" + grid[3][5:]
    world = GridWorld.from_text("\n".join(grid))
    assert 1500 < world.n_states < 2000
    assert_sparse_is_dense(chain(world), 10, 0.9)


@pytest.mark.parametrize("text", ["\n".join(["." * 13] * 13), big_rooms(4, 5).text, big_rooms(3, 8, seed=4).text])
def test_spaces_are_those_of_lapack(text):
    T = chain(GridWorld.from_text(text))
    exact = sr_eigenpurposes(T, 0.9, method="dense")
    found = sr_eigenpurposes(T, 0.9, 12, method="sparse")
    whole = np.concatenate([group for group in eigenspaces(exact.values, 1e-6) if group[-1] < 12])
    np.testing.assert_allclose(alignment(found.vectors, exact, 1e-6)[whole], 1, atol=1e-9)


def test_the_laplacian_without_self_loops():
    """Its zero belongs to D^½·1, which is not constant: the end of the spectrum must be found first."""
    for text in (big_rooms(4, 6).text, "\n".join(["." * 25] * 25), "." * 700):
        L = laplacian(GridWorld.from_text(text).adjacency(sparse_result=True))
        thin, full = (extract_eigenpurposes(L, 8, "smallest", method=method) for method in ("sparse", "dense"))
        np.testing.assert_allclose(thin.values, full.values, rtol=0, atol=1e-10)
        assert residuals(L, thin).max() < 1e-10


# --- nothing is missed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [2, 3, 7])
def test_every_copy_of_a_repeated_eigenvalue_is_found(copies):
    """Worlds side by side without a way between them: each eigenvalue `copies` times, which Lanczos alone never sees."""
    T = chain(big_rooms(3, 6))
    several = sparse.csr_matrix(sparse.block_diag([T] * copies))
    one, found = extract_eigenpurposes(T, 6).values, extract_eigenpurposes(several, 3 * copies, method="sparse")
    np.testing.assert_allclose(found.values, np.repeat(one[:3], copies), atol=1e-12)
    assert np.abs(found.vectors.T @ found.vectors - np.eye(3 * copies)).max() < 1e-10
    assert residuals(several, found).max() < 1e-10


@pytest.mark.parametrize("count", [2, 3, 5, 6, 9])
def test_a_space_is_whole_before_count_cuts_it(count, monkeypatch):
    """An open room has twins: the first of two must be the same whether the second was asked for or not."""
    monkeypatch.setattr(spectrum, "SPARE", 0)  # spare vectors mostly bring the twin along; here it must be looked for
    T = chain(GridWorld.from_text("\n".join(["." * 25] * 25)))
    every = extract_eigenpurposes(T, method="dense")
    some = extract_eigenpurposes(T, count, method="sparse")
    np.testing.assert_allclose(some.vectors, every.vectors[:, :count], atol=1e-9)


@pytest.mark.parametrize("doors", [0, 5])
def test_what_arpack_misses_is_found(doors, monkeypatch):
    """ARPACK usually finds all copies of an eigenvalue, thanks to rounding, but promises nothing: let it lose some."""
    text = with_doors("\n".join(["." * 15] * 15), doors)
    T = chain(GridWorld.from_text(text))
    honest, calls = spectrum._arpack, []

    def careless(*arguments, **settings):
        values, vectors = honest(*arguments, **settings)
        calls.append(1)
        lost = np.argsort(-np.abs(values))[1:3] if len(calls) == 1 else []
        return np.delete(values, lost), np.delete(vectors, lost, axis=1)

    monkeypatch.setattr(spectrum, "_arpack", careless)
    assert_sparse_is_dense(T, 6)
    assert len(calls) > 2


def test_the_end_of_the_spectrum_is_found():
    """Above it, and nearer than the second eigenvalue: else Lanczos would crawl, and in large worlds fail."""
    for text in (big_rooms(6, 6).text, "." * 300):
        L = laplacian(GridWorld.from_text(text).adjacency(sparse_result=True))
        with spectrum.tqdm(disable=True) as bar:
            sigma = spectrum._shift(sparse.csr_matrix(-L), bar)
        assert 0 < sigma < extract_eigenpurposes(L, 2, "smallest", method="dense").values[1]


def test_every_end_that_cannot_be_left_is_found():
    """Each closed part of a world has its own eigenvalue 1, and the vectors are the chances to end there."""
    text = "\n".join(["." * 9] * 3 + ["XvXXvXXvX"] * 1 + ["..X...X.."] * 2)
    T = chain(GridWorld.from_text(text))
    found = extract_eigenpurposes(T, 4, method="sparse")
    np.testing.assert_allclose(found.values[:3], 1, atol=1e-12)
    assert found.values[3] < 0.999
    exact = extract_eigenpurposes(T, 3, method="dense")
    np.testing.assert_allclose(principal_cosines(found.vectors[:, :3], exact.vectors), 1, atol=1e-9)


def test_a_defective_chain():
    """Doors in a row behind a room: one eigenvalue ¾ with a single vector, whatever its multiplicity."""
    T = chain(GridWorld.from_text("." * 30 + "\n" + "." * 30 + "\n" + ">" * 29 + "."))
    found = extract_eigenpurposes(T, 5, method="sparse")
    np.testing.assert_allclose(found.values, extract_eigenpurposes(T, 5, method="dense").values, atol=1e-8)


def side_by_side(*texts):
    return sparse.csr_matrix(sparse.block_diag([chain(GridWorld.from_text(text)) for text in texts]))


def test_the_order_is_that_of_the_sr_not_of_t():
    """Twelve doors in a circle beside a corridor: the pair ¾ + ¼·e^{±iπ/6} comes sixth in T, but far later in Ψ."""
    T = side_by_side(circle(4), "." * 31)
    by_t, _ = assert_sparse_is_dense(T, 7)
    by_sr, _ = assert_sparse_is_dense(T, 7, 0.99)
    assert by_t.values[5] == pytest.approx(0.75 + 0.25 * np.cos(np.pi / 6), abs=1e-12)
    assert principal_cosines(by_t.vectors, by_sr.vectors).min() < 1e-6


def test_a_complex_pair_that_is_far_away_but_early():
    """In the order of T it is 14th and 15th, yet 23 real eigenvalues of the corridor are nearer to 1."""
    found, _ = assert_sparse_is_dense(side_by_side(circle(4), "." * 101), 15)
    assert np.isclose(found.values, 0.75 + 0.25 * np.cos(np.pi / 6), atol=1e-12).sum() == 2


def test_large_unsymmetric_worlds_say_what_they_cannot_know(monkeypatch):
    monkeypatch.setattr(spectrum, "_SURE", 10)
    with pytest.warns(SpectrumWarning, match="another complex one, farther away"):
        extract_eigenpurposes(side_by_side(circle(30), "\n".join(["." * 9] * 9)), 12, method="sparse")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extract_eigenpurposes(chain(GridWorld.from_text("." * 40 + ">" + "." * 40)), 3, method="sparse")


# --- large ----------------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_states():
    """In little memory, with residuals of rounding, twice the same, and the constant vector first."""
    T = chain(big_rooms(20, 16))
    tracemalloc.start()
    found = sr_eigenpurposes(T, 0.9, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * T.shape[0]  # bytes: Ψ would take 8 · 10⁵ a state
    assert residuals(T, found, 0.9, 1e-13).max() < 1e-12
    assert np.ptp(found.vectors[:, 0]) < 1e-9
    assert (np.diff(found.values) < 0).all()
    again = sr_eigenpurposes(T, 0.9, 10)
    np.testing.assert_array_equal(again.vectors, found.vectors)


def test_progress_is_shown(capfd):
    T = chain(big_rooms(8, 8))
    extract_eigenpurposes(T, 3)
    assert capfd.readouterr().err == ""
    extract_eigenpurposes(T, 3, progress=True)
    assert "solves" in capfd.readouterr().err


# --- residuals and refusals -----------------------------------------------------------------------------------------


def test_residuals_notice():
    T = chain(big_rooms(3, 5))
    good = extract_eigenpurposes(T, 4)
    assert residuals(T, good).max() < 1e-13
    bent = good.vectors.copy()
    bent[7, 1] += 1e-3
    assert (residuals(T, Eigenpurposes(good.values, bent)) > 1e-5).tolist() == [False, True, False, False]
    assert residuals(T, Eigenpurposes(good.values + 1e-3, good.vectors)).min() > 0.9e-3
    psi = successor_representation(T, 0.9)
    np.testing.assert_allclose(residuals(psi, extract_eigenpurposes(psi, 4)), 0, atol=1e-12)
    assert residuals(T, extract_eigenpurposes(psi, 4), gamma=0.9).max() < 1e-12


def test_auto_chooses(monkeypatch):
    """Sparse for a large sparse matrix and few vectors; dense for a small, a dense, or all of them."""
    used = []
    monkeypatch.setattr(
        "eigenlib.eigenpurposes.leading_eigenpairs", lambda *a: used.append(1) or spectrum.leading_eigenpairs(*a)
    )
    small, large = chain(big_rooms(2, 5)), chain(big_rooms(4, 6))
    for matrix, count, expected in ((small, 3, 0), (large.toarray(), 3, 0), (large, None, 0), (large, 3, 1)):
        used.clear()
        extract_eigenpurposes(matrix, count)
        assert len(used) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "quick"}, "method must be 'auto'.*not 'quick'"),
        ({"method": "sparse", "first": "smallest"}, "T with first='largest' or a Laplacian with first='smallest'"),
    ],
)
def test_refusals(settings, message):
    T = chain(big_rooms(2, 7))
    with pytest.raises(ValueError, match=message):
        extract_eigenpurposes(T, 3, **settings)
    with pytest.raises(ValueError, match="sums to"):
        sr_eigenpurposes(2 * T, 0.9, 3)
    with pytest.raises(ValueError, match="γ must lie"):
        sr_eigenpurposes(T, 1.0, 3)
    with pytest.raises(ValueError, match="count"):
        sr_eigenpurposes(T, 0.9, 0)


def test_failures_are_one_clear_error(monkeypatch):
    T = chain(big_rooms(4, 6))

    def no_memory(*arguments, **settings):
        raise SystemError("gstrf was called with invalid arguments")  # what SuperLU says when memory runs out

    def no_convergence(*arguments, **settings):
        raise spectrum.ArpackError(-1, {-1: "No convergence"})

    with monkeypatch.context() as patch:
        patch.setattr(factors, "splu", no_memory)
        with pytest.raises(MemoryError, match="do not fit into memory: use a smaller world"):
            extract_eigenpurposes(T, 3)
    monkeypatch.setattr(spectrum, "eigsh", no_convergence)
    with pytest.raises(RuntimeError, match=r"did not converge.*method='dense'"):
        extract_eigenpurposes(T, 3)
