"""Order, sign and degeneracy of eigenvectors, and that they are the same on every machine."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mazes import random_maze
from scipy import sparse

from eigenlib.canonical import canonical_basis, fix_signs
from eigenlib.comparing import alignment, eigenspaces, match_signs, principal_cosines, rotated
from eigenlib.eigenpurposes import Eigenpurposes, extract_eigenpurposes
from eigenlib.gridworld import GridWorld
from eigenlib.representation import laplacian, successor_representation

RING = ">>v\n^Xv\n^<<"
ONE_WAY = "....\n..>.\n.X..\n.<.."


def psi_of(text: str, gamma: float = 0.9) -> np.ndarray:
    return successor_representation(GridWorld.from_text(text).transition_matrix(), gamma)


def laplacian_of(name: str) -> np.ndarray:
    return laplacian(GridWorld.named(name).adjacency())


def simple(values: np.ndarray) -> np.ndarray:
    """Columns whose eigenvalue stands clear of all others."""
    return np.concatenate([group for group in eigenspaces(values, 1e-3) if len(group) == 1])


def rotation(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# --- extraction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unsymmetric", [False, True])
def test_order_starts_at_the_end_that_was_asked_for(unsymmetric):
    """A reversed order would follow the most jagged directions instead of the smoothest."""
    psi = psi_of(ONE_WAY if unsymmetric else "....\n..X.")
    assert (np.abs(psi - psi.T).max() > 1e-3) == unsymmetric
    largest, smallest = (extract_eigenpurposes(psi, first=end).values for end in ("largest", "smallest"))
    np.testing.assert_allclose(largest, np.sort(np.linalg.eigvals(psi).real)[::-1], atol=1e-10)
    np.testing.assert_allclose(smallest, np.sort(np.linalg.eigvals(psi).real), atol=1e-10)
    np.testing.assert_array_equal(extract_eigenpurposes(psi).values, largest)


def test_smooth_directions_come_first_in_both_representations():
    """In a corridor the second vector runs from one end to the other without turning, for Ψ as for L."""
    psi = successor_representation(GridWorld.named("corridor").transition_matrix(), 0.9)
    for purposes in (
        extract_eigenpurposes(psi, 2),
        extract_eigenpurposes(laplacian(GridWorld.named("corridor").adjacency(True)), 2, first="smallest"),
    ):
        assert np.ptp(purposes.vectors[:, 0]) < 1e-9
        steps = np.diff(purposes.vectors[:, 1])
        assert (steps > 0).all() or (steps < 0).all()


@pytest.mark.parametrize("text", ["..", "...\n.X.", ONE_WAY, RING])
def test_vectors_are_real_unit_columns_and_span_everything(text):
    values, vectors = extract_eigenpurposes(psi_of(text))
    assert np.isrealobj(values)
    assert np.isrealobj(vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, atol=1e-12)
    assert np.linalg.cond(vectors) < 1e6


@pytest.mark.parametrize("name", ["open_room", "four_rooms"])
def test_vectors_of_a_symmetric_matrix_are_orthonormal_eigenvectors(name):
    L = laplacian_of(name)
    values, vectors = extract_eigenpurposes(L, first="smallest")
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(L)), atol=1e-10)
    np.testing.assert_allclose(L @ vectors, vectors * values, atol=1e-10)


def test_real_eigenvectors_of_an_unsymmetric_matrix_are_right_ones():
    """Left eigenvectors (a transposed matrix) would be another thing: the chain's flow instead of its values."""
    psi = psi_of("....\n..>.\n....")
    values, vectors = extract_eigenpurposes(psi)
    assert np.isrealobj(np.linalg.eigvals(psi))
    np.testing.assert_allclose(psi @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors[:, 0], vectors[0, 0], atol=1e-9)  # constant: rows of Ψ sum to 1/(1−γ)


@pytest.mark.parametrize("first", ["largest", "smallest"])
def test_count_keeps_the_leading_ones(first):
    psi = psi_of("....\n..X.")
    some, every = extract_eigenpurposes(psi, 3, first), extract_eigenpurposes(psi, first=first)
    assert some.vectors.shape == (7, 3)
    np.testing.assert_array_equal(some.values, every.values[:3])
    np.testing.assert_array_equal(some.vectors, every.vectors[:, :3])


def test_sparse_matrices_give_the_same():
    L = laplacian_of("four_rooms")
    dense, thin = (extract_eigenpurposes(matrix, 4, "smallest") for matrix in (L, sparse.csr_matrix(L)))
    np.testing.assert_allclose(dense.values, thin.values, atol=1e-12)
    np.testing.assert_allclose(dense.vectors, thin.vectors, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_complex_pairs_of_a_ring_become_real_invariant_planes(gamma):
    """Eight doors in a circle: T has ¾ + ¼·e^{2πik/8}. Each conjugate pair must leave two columns of one plane."""
    psi = psi_of(RING, gamma)
    roots = 1 / (1 - gamma * (0.75 + 0.25 * np.exp(2j * np.pi * np.arange(8) / 8)))
    values, vectors = extract_eigenpurposes(psi)
    np.testing.assert_allclose(values, np.sort(roots.real)[::-1], atol=1e-10)
    groups = eigenspaces(values)
    assert [len(group) for group in groups] == [1, 2, 2, 2, 1]
    for group in groups:
        basis, _ = np.linalg.qr(vectors[:, group])
        assert np.linalg.matrix_rank(vectors[:, group], tol=1e-6) == len(group)
        np.testing.assert_allclose(psi @ basis, basis @ (basis.T @ psi @ basis), atol=1e-9)
    expected = [value for value in roots if value.imag > 1e-9]
    inside = [np.linalg.eigvals(np.linalg.lstsq(vectors[:, g], psi @ vectors[:, g])[0]) for g in groups if len(g) == 2]
    np.testing.assert_allclose(
        np.sort_complex([pair[pair.imag > 0][0] for pair in inside]), np.sort_complex(expected), atol=1e-9
    )


def test_a_pair_that_rounding_made_complex_keeps_both_directions():
    """A repeated real eigenvalue of an unsymmetric matrix often comes back as 1 ± 1e-15i; its plane must survive."""
    nearly = np.array([[1, 1e-14, 0, 0], [-1e-14, 1, 0, 0], [0, 0, 3, 1], [0, 0, 0, 2]])
    values, vectors = extract_eigenpurposes(nearly)
    np.testing.assert_allclose(values, [3, 2, 1, 1], atol=1e-12)
    assert np.linalg.matrix_rank(vectors, tol=1e-6) == 4


@pytest.mark.parametrize(
    ("matrix", "settings", "message"),
    [
        (np.eye(3), {"count": 0}, "count must be at least 1, got 0"),
        (np.eye(3), {"count": 3.0}, "count must be a whole number, got 3.0"),
        (1j * np.eye(3), {}, "must be real"),
        (np.eye(3), {"count": 4}, "count.*3 states"),
        (np.eye(3), {"first": "big"}, "first.*'big'"),
        (np.ones((2, 3)), {}, r"square.*\(2, 3\)"),
        (np.ones(3), {}, "square"),
        ([[np.nan, 0], [0, 1]], {}, "NaN"),
    ],
)
def test_bad_requests_are_refused(matrix, settings, message):
    with pytest.raises(ValueError, match=message):
        extract_eigenpurposes(matrix, **settings)


# --- signs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["open_room", "corridor", "four_rooms"])
def test_signs_do_not_depend_on_the_solver(name):
    """LAPACK may return v or −v; an eigenoption and its opposite must not swap places between machines."""
    vectors = extract_eigenpurposes(laplacian_of(name), first="smallest").vectors
    flips = np.random.default_rng(0).choice([-1.0, 1.0], vectors.shape[1])
    np.testing.assert_array_equal(fix_signs(-vectors), vectors)
    np.testing.assert_array_equal(fix_signs(vectors * flips), vectors)
    np.testing.assert_array_equal(fix_signs(vectors), vectors)


@pytest.mark.parametrize("name", ["open_room", "corridor"])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_does_not_choose_signs_on_a_symmetric_map(name, seed):
    """Both ends of such a vector are equally large: noise of 1e-10 in the matrix must not turn it round."""
    L = laplacian_of(name)
    noise = 1e-10 * np.random.default_rng(seed).standard_normal(L.shape)
    clean = extract_eigenpurposes(L, first="smallest")
    noisy = extract_eigenpurposes(L + noise + noise.T, first="smallest")
    columns = simple(clean.values)
    assert len(columns) >= 10
    np.testing.assert_allclose(noisy.vectors[:, columns], clean.vectors[:, columns], atol=1e-5)


def test_sign_is_that_of_the_first_of_the_largest_entries():
    vectors = np.array([[0.1, -0.5, 0.0], [-0.9, 0.5 + 1e-9, 0.0], [0.3, 0.1, 0.0]])
    np.testing.assert_array_equal(np.sign(fix_signs(vectors)), [[-1, 1, 0], [1, -1, 0], [-1, -1, 0]])


def test_match_signs_turns_columns_towards_the_reference():
    reference = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 4)))[0]
    np.testing.assert_array_equal(match_signs(reference * [1, -1, -1, 1], reference), reference)


# --- the same on every machine ----------------------------------------------------------------------------------------


def directions_of_many_worlds() -> dict[str, np.ndarray]:
    """Vectors of Ψ, T and L of maps with many symmetries, of random mazes, and with doors: some cannot be diagonalised."""
    rng = np.random.default_rng(0)
    ring = "\n".join(["." * 7, *[".XXXXX."] * 5, "." * 7])
    texts = {"ring": ring, "one-way ring": RING, "one-way": ONE_WAY, "square": "\n".join(["." * 8] * 8)}
    texts |= {name: GridWorld.named(name).text for name in ("four_rooms", "open_room", "nine_rooms", "dayan")}
    texts |= {f"maze {k}": random_maze(rng, 9, 9, 0.3) for k in range(20)}
    for k in range(20):
        cells = np.array(list(texts[f"maze {k}"]))
        cells[rng.choice(np.flatnonzero(cells == "."), 2)] = "<"
        texts[f"doors {k}"] = "".join(cells)
    found = {}
    for name, text in texts.items():
        try:
            world = GridWorld.from_text(text)
        except ValueError:
            continue  # a door that opens into a wall
        T = world.transition_matrix()
        found[f"{name}, Ψ"] = extract_eigenpurposes(successor_representation(T, 0.9)).vectors
        found[f"{name}, T"] = extract_eigenpurposes(T).vectors
        found[f"{name}, L"] = extract_eigenpurposes(laplacian(world.adjacency(True)), first="smallest").vectors
    for name, text in {
        "open": "\n".join(["." * 25] * 25),
        "ring": "." * 41 + "\n" + f".{'X' * 39}.\n" * 39 + "." * 41,
    }.items():
        T = GridWorld.from_text(text).transition_matrix(sparse_result=True)
        found |= {
            f"sparse {name}, {count}": extract_eigenpurposes(T, count, method="sparse").vectors for count in (3, 6)
        }
    return found


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> dict[str, float]:
    assert set(found) == set(expected)
    gaps = {name: float(np.abs(found[name] - expected[name]).max()) for name in expected}
    return {name: gap for name, gap in gaps.items() if not gap <= 1e-9}


@pytest.mark.parametrize(("kernels", "threads"), [("Prescott", "1"), ("Haswell", "2")])
def test_another_cpu_gives_the_same_vectors(kernels, threads, tmp_path):
    """OpenBLAS has kernels for each type of CPU; within a repeated eigenvalue each of them returns another basis."""
    here = {"OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    here["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    code = "import sys; from test_eigenpurposes import *; np.savez(sys.argv[1], **directions_of_many_worlds())"
    subprocess.run([sys.executable, "-c", code, tmp_path / "there.npz"], env=os.environ | here, check=True)
    with np.load(tmp_path / "there.npz") as there:
        assert differences(dict(there), directions_of_many_worlds()) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_solver_that_turns_every_eigenspace_changes_nothing(seed, monkeypatch):
    """What another CPU might do, done on this one: an arbitrary basis of each eigenspace, arbitrary signs."""
    rng, honest = np.random.default_rng(seed), np.linalg.eigh

    def turned(matrix):
        values, vectors = honest(matrix)
        for group in eigenspaces(values, 1e-10):
            vectors[:, group] = vectors[:, group] @ np.linalg.qr(rng.standard_normal((len(group), len(group))))[0]
        return values, vectors

    expected = directions_of_many_worlds()
    monkeypatch.setattr(np.linalg, "eigh", turned)
    assert differences(directions_of_many_worlds(), expected) == {}


def test_a_canonical_basis_belongs_to_its_space():
    rng = np.random.default_rng(0)
    for size in (1, 2, 5):
        basis = np.linalg.qr(rng.standard_normal((30, size)))[0]
        chosen = canonical_basis(basis)
        np.testing.assert_allclose(chosen @ chosen.T, basis @ basis.T, atol=1e-12)
        np.testing.assert_allclose(chosen.T @ chosen, np.eye(size), atol=1e-12)
        turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
        np.testing.assert_allclose(canonical_basis(basis @ turn), chosen, atol=1e-12)


def test_the_state_that_stands_out_most_comes_first():
    """Of the plane z = 0 in three dimensions both axes stand out as much: the lower number first; of a tilted one, x."""
    flat = canonical_basis(np.eye(3)[:, [1, 0]])
    np.testing.assert_allclose(flat, np.eye(3)[:, :2], atol=1e-15)
    tilted = canonical_basis(np.linalg.qr(np.array([[0.0, 1], [1, 0], [0.1, 0]]))[0])
    np.testing.assert_allclose(tilted[:, 0], [1, 0, 0], atol=1e-15)


def test_a_matrix_with_too_few_vectors_gives_those_it_has():
    """A Jordan block: rounding tears its value apart; the one vector must come three times, to the last digits."""
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    block = np.diag([0.5, 0.5, 0.5, 0.9, -0.2]) + np.diag([1.0, 1, 0, 0], 1)
    values, vectors = extract_eigenpurposes(turn @ block @ turn.T)
    np.testing.assert_allclose(values, [0.9, 0.5, 0.5, 0.5, -0.2], atol=1e-10)
    np.testing.assert_allclose(vectors[:, 1:4], fix_signs(turn[:, :1]) @ np.ones((1, 3)), atol=1e-10)


# --- spaces ---------------------------------------------------------------------------------------------------------


def test_eigenspaces_group_equal_neighbours():
    groups = eigenspaces(np.array([3.0, 2.0, 2.0 - 1e-10, 1.0, 0.5, 0.5]))
    assert [list(group) for group in groups] == [[0], [1, 2], [3], [4, 5]]
    assert [list(group) for group in eigenspaces(np.array([1.0, 1.1, 5.0]), tolerance=0.2)] == [[0, 1], [2]]


def test_rotating_turns_what_is_arbitrary_and_nothing_else():
    """The square room's planes turn, differently at each draw; spaces, single vectors and orthogonality stay."""
    exact = extract_eigenpurposes(laplacian_of("open_room"), first="smallest")
    one, other, again = (rotated(exact, seed) for seed in (0, 1, 0))
    np.testing.assert_array_equal(one.vectors, again.vectors)
    np.testing.assert_allclose(one.vectors.T @ one.vectors, np.eye(len(one.values)), atol=1e-12)
    np.testing.assert_allclose(alignment(one.vectors, exact), 1, atol=1e-12)
    single = np.concatenate([group for group in eigenspaces(exact.values) if len(group) == 1])
    for reference in (exact.vectors, other.vectors):
        cosines = np.abs((one.vectors * reference).sum(axis=0))
        assert cosines[single] == pytest.approx(1, abs=1e-12)
        assert 0.2 < np.median(np.delete(cosines, single)) < 0.95


def test_alignment_does_not_depend_on_the_basis_of_a_repeated_eigenvalue():
    """A square room cannot tell rows from columns, so λ₂ = λ₃: any turn of that plane is as good."""
    exact = extract_eigenpurposes(laplacian_of("open_room"), first="smallest")
    assert [len(group) for group in eigenspaces(exact.values)][:3] == [1, 2, 1]
    turned = exact.vectors.copy()
    turned[:, 1:3] = turned[:, 1:3] @ rotation(0.7)
    assert abs(turned[:, 1] @ exact.vectors[:, 1]) < 0.8  # single vectors would disagree
    np.testing.assert_allclose(alignment(turned[:, :6], exact), 1, atol=1e-12)
    np.testing.assert_allclose(alignment(exact.vectors[:, :6], Eigenpurposes(exact.values, turned)), 1, atol=1e-12)
    np.testing.assert_allclose(alignment(-3 * turned[:, :6], exact), 1, atol=1e-12)  # neither sign nor length counts


def test_alignment_works_for_an_oblique_basis():
    """Vectors of an unsymmetric matrix need not be orthogonal; without orthonormalising, the cosine would be off."""
    oblique = np.array([[1.0, 0.9, 0], [0, np.sqrt(1 - 0.81), 0], [0, 0, 1]])
    exact = Eigenpurposes(np.array([2.0, 2.0, 1.0]), oblique)
    estimates = np.column_stack([[1.0, 1, 0], [0, 1, 1], [0, 0, 1]])  # in the plane, half out of it, on the axis
    np.testing.assert_allclose(alignment(estimates, exact), [1, np.sqrt(0.5), 1], atol=1e-12)


def test_alignment_is_the_cosine_to_the_right_space():
    """Wrong vectors get less than 1, orthogonal ones 0: the measure can fail."""
    exact = extract_eigenpurposes(laplacian_of("open_room"), first="smallest")
    e = exact.vectors
    estimates = np.stack([e[:, 3], e[:, 1] + e[:, 3], 3 * e[:, 1] + 4 * e[:, 0], e[:, 3]], axis=1)
    np.testing.assert_allclose(alignment(estimates, exact), [0, np.sqrt(0.5), 0.6, 1], atol=1e-9)


def test_alignment_never_exceeds_one():
    """Rounding must not push a perfect match above 1, where an arccos would be NaN."""
    for name in ("open_room", "four_rooms"):
        exact = extract_eigenpurposes(laplacian_of(name), first="smallest")
        result = alignment(exact.vectors, exact)
        assert result.max() <= 1
        assert result.min() > 1 - 1e-12


def test_alignment_refuses_more_vectors_than_it_knows():
    """An estimate with more columns than the exact set would be compared with uninitialised memory."""
    with pytest.raises(ValueError, match="cannot be compared"):
        alignment(np.eye(4)[:, :3], Eigenpurposes(np.array([1.0]), np.eye(4)[:, :1]))


def test_principal_cosines_know_spaces_not_bases():
    """Two bases of one plane give 1 and 1; a plane tilted by 0.3 about one axis gives 1 and cos 0.3."""
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(20, 2))
    assert principal_cosines(plane, plane @ rng.normal(size=(2, 2))) == pytest.approx([1, 1])
    axes = np.eye(3)
    tilted = np.stack([axes[0], np.cos(0.3) * axes[1] + np.sin(0.3) * axes[2]], axis=1)
    assert principal_cosines(axes[:, :2], tilted) == pytest.approx([1, np.cos(0.3)])
