"""Ψ and L against their definitions, and the theorem that joins them (§3.1 and the appendix of the paper)."""

from functools import cache

import numpy as np
import pytest
from mazes import random_maze
from scipy import sparse

from eigenlib.comparing import eigenspaces
from eigenlib.eigenpurposes import extract_eigenpurposes
from eigenlib.gridworld import GridWorld, map_names
from eigenlib.representation import laplacian, successor_representation

GAMMAS = [0.1, 0.5, 0.9, 0.99]
MAZES = 200
FOUR_ROOMS = [0, 0.00700710, 0.00849517, 0.01741378, 0.09398181, 0.11929182, 0.12424294, 0.12922803, 0.13990542]
FOUR_ROOMS += [0.14591714]  # published: ten smallest eigenvalues of L without self-loops


@cache
def mazes() -> tuple[GridWorld, ...]:
    """Random connected worlds of many shapes and densities, each with at least two states."""
    worlds = []
    for seed in range(MAZES):
        rng = np.random.default_rng(seed)
        text = random_maze(rng, rng.integers(3, 8), rng.integers(3, 8), rng.uniform(0.05, 0.45))
        worlds.append(GridWorld.from_text(text, name=f"seed {seed}\n{text}\n"))
    return tuple(world for world in worlds if world.n_states >= 2)


def pair(world: GridWorld, self_loops: bool):
    """W, its degrees, and T = D⁻¹W, which with self-loops is the world's own T."""
    W = world.adjacency(self_loops=self_loops)
    degree = W.sum(axis=1)
    return W, degree, W / degree[:, None]


# --- the successor representation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.0, *GAMMAS])
@pytest.mark.parametrize("text", ["..X\n...", ".>.\n...", ".....\nX.XX.\n....."])
def test_sr_is_the_sum_of_discounted_powers(text, gamma):
    """Ψ = Σ γᵗTᵗ: a transposed T or a forgotten γ shows, also for an unsymmetric T."""
    world = GridWorld.from_text(text, slip=0.2)
    T = world.transition_matrix(np.tile([0.4, 0.3, 0.2, 0.1], (world.n_states, 1)))
    term, total = np.eye(world.n_states), np.zeros_like(T)
    for _ in range(int(np.log(1e-14) / np.log(gamma)) if gamma else 1):
        total += term
        term = gamma * term @ T
    np.testing.assert_allclose(successor_representation(T, gamma), total, atol=1e-10)


def test_sr_of_a_one_way_step_by_hand():
    """0 → 1 for sure, 1 stays: from 0 one visit to 0 and γ + γ² + … to 1. The transpose would be another matrix."""
    np.testing.assert_allclose(successor_representation([[0, 1], [0, 1]], 0.5), [[1, 1], [0, 2]], atol=1e-14)


@pytest.mark.parametrize("gamma", [0.0, *GAMMAS])
@pytest.mark.parametrize("name", map_names())
def test_sr_rows_sum_to_the_horizon(name, gamma):
    """All visits together are 1 + γ + γ² + … = 1/(1−γ)."""
    psi = successor_representation(GridWorld.named(name).transition_matrix(), gamma)
    np.testing.assert_allclose(psi.sum(axis=1), 1 / (1 - gamma), rtol=1e-10)
    assert psi.min() > -1e-12


def test_sr_takes_sparse_and_leaves_its_argument_alone():
    world = GridWorld.named("four_rooms")
    T = world.transition_matrix()
    before = T.copy()
    np.testing.assert_allclose(
        successor_representation(world.transition_matrix(sparse_result=True), 0.9), successor_representation(T, 0.9)
    )
    np.testing.assert_array_equal(T, before)


@pytest.mark.parametrize("gamma", [-0.1, 1, 1.0, 1.5, float("nan"), float("inf")])
def test_discount_outside_zero_to_one_is_refused(gamma):
    with pytest.raises(ValueError, match="γ"):
        successor_representation(np.eye(2), gamma)


@pytest.mark.parametrize(
    ("T", "message"),
    [
        ([[1, 0], [0.5, 0.4]], "Row 1 .*0.9"),
        ([[0.5, 0.5], [1, 1]], "Row 1 .*2"),
        ([[1.5, -0.5], [0, 1]], "negative.*-0.5"),
        ([[np.nan, 1], [0, 1]], "NaN"),
        ([[np.inf, 1], [0, 1]], "NaN or ∞"),
        (np.full((2, 3), 1 / 3), r"square.*\(2, 3\)"),
        (np.ones(3), r"square.*\(3,\)"),
        (np.ones((0, 0)), r"square.*\(0, 0\)"),
    ],
)
def test_matrices_that_are_no_chain_are_refused(T, message):
    """Also as sparse matrices, which take another path through the checks."""
    with pytest.raises(ValueError, match=message):
        successor_representation(T, 0.9)
    if np.ndim(T) == 2 and np.size(T):
        with pytest.raises(ValueError, match=message):
            successor_representation(sparse.csr_matrix(T), 0.9)


# --- the Laplacian --------------------------------------------------------------------------------------------------


def test_laplacian_by_hand():
    """A path of three states: −1/√(1·2) off the diagonal. D in place of D^½ would give −1/2."""
    off = -1 / np.sqrt(2)
    by_hand = [[1, off, 0], [off, 1, off], [0, off, 1]]
    np.testing.assert_allclose(laplacian(GridWorld.from_text("...").adjacency()), by_hand, atol=1e-15)


def test_first_eigenvalues_of_four_rooms_are_the_published_ones():
    values = np.linalg.eigvalsh(laplacian(GridWorld.named("four_rooms").adjacency()))
    np.testing.assert_allclose(values[:10], FOUR_ROOMS, atol=6e-9)
    assert (np.abs(values - 1) < 1e-9).sum() == 8


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("name", map_names())
def test_laplacian_is_symmetric_positive_semidefinite_with_one_zero(name, self_loops):
    """One connected piece: exactly one zero, whose vector is D^½·1; all else up to 2."""
    W = GridWorld.named(name).adjacency(self_loops)
    L = laplacian(W)
    np.testing.assert_allclose(L, L.T, atol=1e-15)
    values = np.linalg.eigvalsh(L)
    assert abs(values[0]) < 1e-12
    assert values[1] > 1e-4
    assert values[-1] < 2 + 1e-12
    np.testing.assert_allclose(L @ np.sqrt(W.sum(axis=1)), 0, atol=1e-12)


@pytest.mark.parametrize("self_loops", [False, True])
def test_sparse_laplacian_equals_the_dense_one(self_loops):
    world = GridWorld.named("four_rooms")
    L = laplacian(world.adjacency(self_loops, sparse_result=True))
    assert sparse.issparse(L)
    np.testing.assert_allclose(L.toarray(), laplacian(world.adjacency(self_loops)), atol=1e-15)


@pytest.mark.parametrize(
    ("W", "message"),
    [
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], "State 2 "),
        (np.zeros((1, 1)), "State 0 "),
        ([[0, -1], [-1, 3]], "negative.*-1"),
        ([[0, np.nan], [1, 0]], "NaN"),
        (np.ones((2, 3)), r"square.*\(2, 3\)"),
        (np.ones(4), r"square.*\(4,\)"),
    ],
)
def test_weights_that_are_no_graph_are_refused(W, message):
    with pytest.raises(ValueError, match=message):
        laplacian(W)
    if np.ndim(W) == 2:
        with pytest.raises(ValueError, match=message):
            laplacian(sparse.csr_matrix(W))


# --- the theorem ----------------------------------------------------------------------------------------------------


def test_the_theorem_is_tried_on_enough_worlds():
    """Nearly all mazes count, and nearly all of them have a D that is not constant without self-loops."""
    assert len(mazes()) >= 200
    assert sum(np.ptp(pair(world, False)[1]) > 0 for world in mazes()) >= 150


def test_with_self_loops_T_is_the_worlds_own():
    """Otherwise the theorem below would be about a T that no random walk has."""
    for world in mazes():
        np.testing.assert_allclose(pair(world, True)[2], world.transition_matrix(), atol=1e-15, err_msg=world.name)


@pytest.mark.parametrize("self_loops", [True, False], ids=["self-loops", "no self-loops"])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_eigenvalues_map_in_reverse_order(gamma, self_loops):
    """λ_PVF,j = 1 − (1 − 1/λ_SR,i)/γ with i + j = n + 1, both sorted by numpy alone."""
    for world in mazes():
        W, _, T = pair(world, self_loops)
        of_L = np.linalg.eigvalsh(laplacian(W))  # ascending
        of_psi = np.sort(np.linalg.eigvals(successor_representation(T, gamma)).real)  # ascending too
        np.testing.assert_allclose(1 - (1 - 1 / of_psi[::-1]) / gamma, of_L, atol=1e-8, err_msg=world.name)


@pytest.mark.parametrize("self_loops", [True, False], ids=["self-loops", "no self-loops"])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_scaled_sr_eigenvectors_belong_to_the_laplacian(gamma, self_loops):
    """D^½ e of the i-th largest of Ψ is an eigenvector of L for its i-th smallest: L D^½ e = λ D^½ e."""
    for world in mazes():
        W, degree, T = pair(world, self_loops)
        L = laplacian(W)
        of_psi = extract_eigenpurposes(successor_representation(T, gamma), first="largest")
        of_L = extract_eigenpurposes(L, first="smallest")
        scaled = np.sqrt(degree)[:, None] * of_psi.vectors
        np.testing.assert_allclose(L @ scaled, of_L.values * scaled, atol=1e-8, err_msg=world.name)


@pytest.mark.parametrize("self_loops", [True, False], ids=["self-loops", "no self-loops"])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_eigenspaces_are_the_same(gamma, self_loops):
    """No direction may be missing or counted twice: D^½ maps each eigenspace of Ψ onto the whole one of L."""
    for world in mazes():
        W, degree, T = pair(world, self_loops)
        of_psi = extract_eigenpurposes(successor_representation(T, gamma), first="largest")
        of_L = extract_eigenpurposes(laplacian(W), first="smallest")
        for group in eigenspaces(of_L.values, 1e-6):
            basis, _ = np.linalg.qr(np.sqrt(degree)[:, None] * of_psi.vectors[:, group])
            exact = of_L.vectors[:, group]
            np.testing.assert_allclose(basis @ basis.T, exact @ exact.T, atol=1e-8, err_msg=world.name)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_needs_the_square_root_of_D(gamma):
    """The check above can fail: without D^½ the constant top vector of Ψ is no eigenvector of L where D varies."""
    for world in mazes():
        W, degree, T = pair(world, self_loops=False)
        if np.ptp(degree) == 0:
            continue
        top = extract_eigenpurposes(successor_representation(T, gamma), 1).vectors[:, 0]
        np.testing.assert_allclose(top, top[0], atol=1e-9, err_msg=world.name)
        assert np.linalg.norm(laplacian(W) @ top) > 0.01, world.name


@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_fails_if_only_T_counts_self_loops(gamma):
    """The authors' W has no self-loops, their T has: no maze keeps the eigenvalue map then (the traces differ)."""
    for world in mazes():
        of_L = np.linalg.eigvalsh(laplacian(world.adjacency(self_loops=False)))
        of_psi = np.linalg.eigvalsh(successor_representation(world.transition_matrix(), gamma))
        assert np.abs(1 - (1 - 1 / of_psi[::-1]) / gamma - of_L).max() > 0.1, world.name
