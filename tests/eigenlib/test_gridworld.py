"""The world does what its drawing says. The oracle here is the text itself, read cell by cell with plain Python."""

import numpy as np
import pytest
from mazes import random_maze

from eigenlib.gridworld import ACTIONS, ARROWS, GridWorld, MapError, map_names
from eigenlib.one_way import with_valve
from eigenlib.paths import MAPS

DOORS = "....\n.>.v\n.X..\n^..<\n...."
RING = ">>v\n^Xv\n^<<"
UP, RIGHT, DOWN, LEFT = range(4)
WORLDS = {
    **{name: (MAPS / f"{name}.txt").read_text(encoding="utf-8").strip() for name in map_names()},
    **{f"random {seed}": random_maze(np.random.default_rng(seed), 6, 8, 0.3) for seed in range(5)},
    "doors": DOORS,
    "ring": RING,
    "single": "X.X",
}
each_world = pytest.mark.parametrize("text", WORLDS.values(), ids=WORLDS.keys())


def moves_by_hand(text: str) -> np.ndarray:
    """(S, A) next states from the text alone: no padding, no index tricks."""
    lines = text.split("\n")
    number = {}
    for row, line in enumerate(lines):
        for col, character in enumerate(line):
            if character not in "X#":
                number[row, col] = len(number)
    table = []
    for (row, col), state in number.items():
        arrow = lines[row][col]
        targets = [(row - 1, col), (row, col + 1), (row + 1, col), (row, col - 1)]  # up, right, down, left
        blocked = [arrow in "^>v<" and arrow != "^>v<"[action] for action in range(4)]
        table.append([state if shut else number.get(to, state) for to, shut in zip(targets, blocked, strict=True)])
    return np.array(table)


def matrix_by_hand(text: str, action: int) -> np.ndarray:
    """(S, S) the 0/1 transition matrix of always taking one action."""
    moves = moves_by_hand(text)
    return np.eye(len(moves))[moves[:, action]]


def always(action: int, n_states: int) -> np.ndarray:
    return np.tile(np.eye(4)[action], (n_states, 1))


# --- maps -----------------------------------------------------------------------------------------------------------


def test_four_rooms_has_the_published_counts():
    """Another drawing than the paper's would change every number that follows."""
    world = GridWorld.named("four_rooms")
    W = world.adjacency()
    assert world.n_states == 104
    assert (~world.free).sum() == 65
    assert W.sum() / 2 == 168
    degrees, states = np.unique(W.sum(axis=1), return_counts=True)
    assert dict(zip(degrees, states, strict=True)) == {2: 20, 3: 40, 4: 44}


@pytest.mark.parametrize("name", map_names())
def test_every_bundled_map_loads(name):
    """A bundled map that cannot be loaded, or knows no way between some two of its states, breaks a notebook."""
    world = GridWorld.named(name)
    reached = world.adjacency() + np.eye(world.n_states)
    for _ in range(8):  # (I + W)^256: more steps than any bundled map is long
        reached = ((reached @ reached) > 0).astype(float)
    assert reached.all()
    assert name in repr(world)
    assert str(world.n_states) in repr(world)


def test_there_are_bundled_maps_and_an_unknown_name_lists_them():
    assert {"four_rooms", "open_room", "corridor", "dayan"} <= set(map_names())
    with pytest.raises(MapError, match="four_rooms"):
        GridWorld.named("five_rooms")


def test_landmarks_are_the_letters_of_the_map():
    """A landmark off by one row or column would put a goal elsewhere."""
    world = GridWorld.from_text("X.B\nA#.\n..Z")
    assert {name: tuple(world.cells[state]) for name, state in world.landmarks.items()} == {
        "A": (1, 0),
        "B": (0, 2),
        "Z": (2, 2),
    }


@each_world
def test_states_are_numbered_row_by_row(text):
    """cells, state_at and free must tell the same story, or values are drawn in wrong places."""
    world = GridWorld.from_text(text)
    by_hand = [(r, c) for r, line in enumerate(text.split("\n")) for c, char in enumerate(line) if char not in "X#"]
    assert [tuple(cell) for cell in world.cells] == by_hand
    assert [world.state_at[cell] for cell in by_hand] == list(range(world.n_states))
    assert (world.state_at[~world.free] == -1).all()


@each_world
def test_to_grid_puts_every_value_in_its_cell(text):
    world = GridWorld.from_text(text)
    values = np.random.default_rng(1).standard_normal(world.n_states)
    grid = world.to_grid(values)
    assert np.isnan(grid[~world.free]).all()
    assert all(grid[row, col] == value for (row, col), value in zip(world.cells, values, strict=True))


# --- moves, T and W -------------------------------------------------------------------------------------------------


@each_world
def test_next_state_agrees_with_the_text(text):
    """A swapped axis, a wrong action order or a leak through the map's edge shows here."""
    np.testing.assert_array_equal(GridWorld.from_text(text).next_state, moves_by_hand(text))


def test_actions_are_up_right_down_left():
    """In the middle of an open 3×3 room state 4 has 1 above, 5 to the right, 7 below, 3 to the left."""
    assert ACTIONS == ("up", "right", "down", "left")
    assert list(GridWorld.from_text("...\n...\n...").next_state[4]) == [1, 5, 7, 3]


@pytest.mark.parametrize("direction", range(4), ids=ACTIONS)
def test_a_door_is_entered_from_any_side_and_left_only_where_it_points(direction):
    world = GridWorld.from_text(f"...\n.{ARROWS[direction]}.\n...")
    around = [1, 5, 7, 3]  # the states above, right of, below and left of the door, which is state 4
    assert list(world.next_state[4]) == [around[a] if a == direction else 4 for a in range(4)]
    for action, state in enumerate(around):
        assert world.next_state[state, (action + 2) % 4] == 4


@each_world
@pytest.mark.parametrize("slip", [0.0, 0.3, 1.0])
def test_T_is_row_stochastic(text, slip):
    world = GridWorld.from_text(text, slip=slip)
    policy = np.random.default_rng(2).dirichlet(np.ones(4), size=world.n_states)
    for T in (world.transition_matrix(), world.transition_matrix(policy)):
        assert (T >= 0).all()
        np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-12)


@each_world
@pytest.mark.parametrize("slip", [0.0, 0.3, 1.0])
def test_T_mixes_the_three_directions_of_a_slip(text, slip):
    """T of a policy is Σ_a π(a|s) [(1−p) P_a + p/2 (P_left of a + P_right of a)], with every P_a read from the text."""
    world = GridWorld.from_text(text, slip=slip)
    P = [matrix_by_hand(text, action) for action in range(4)]
    policy = np.random.default_rng(3).dirichlet(np.ones(4), size=world.n_states)
    expected = sum(
        policy[:, [a]] * ((1 - slip) * P[a] + slip / 2 * (P[(a + 1) % 4] + P[(a - 1) % 4])) for a in range(4)
    )
    np.testing.assert_allclose(world.transition_matrix(policy), expected, atol=1e-12)


def test_T_of_always_up_with_slip_by_hand():
    """States 0 1 over 2 3. Up works in 8 of 10 tries, else one step left or right; off the map means staying."""
    world = GridWorld.from_text("..\n..", slip=0.2)
    by_hand = [[0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0], [0.8, 0, 0.1, 0.1], [0, 0.8, 0.1, 0.1]]
    np.testing.assert_allclose(world.transition_matrix(always(UP, 4)), by_hand, atol=1e-15)


def test_T_of_a_door_with_slip_by_hand():
    """In '.>.' the door is left by 'up' only through a slip to the right, never by a slip to the left."""
    world = GridWorld.from_text(".>.", slip=0.2)
    by_hand = [[0.9, 0.1, 0], [0, 0.9, 0.1], [0, 0.1, 0.9]]
    np.testing.assert_allclose(world.transition_matrix(always(UP, 3)), by_hand, atol=1e-15)


@each_world
def test_slip_does_not_change_the_uniform_T(text):
    """Slipping turns every direction into its neighbours evenly, so the uniform policy stays uniform."""
    T = [GridWorld.from_text(text, slip=slip).transition_matrix() for slip in (0.0, 0.25, 1.0)]
    np.testing.assert_allclose(T[1], T[0], atol=1e-15)
    np.testing.assert_allclose(T[2], T[0], atol=1e-15)


def test_slip_changes_T_of_another_policy():
    straight, slippery = (GridWorld.named("four_rooms", slip=slip) for slip in (0.0, 0.25))
    up = always(UP, straight.n_states)
    assert np.abs(straight.transition_matrix(up) - slippery.transition_matrix(up)).max() == pytest.approx(0.25)


@each_world
def test_W_with_self_loops_is_four_T(text):
    """The theorem of notebook 02 stands on W = |A|·T."""
    world = GridWorld.from_text(text)
    np.testing.assert_allclose(world.adjacency(self_loops=True), 4 * world.transition_matrix(), atol=1e-14)


@each_world
def test_W_without_self_loops_is_one_between_neighbours_only(text):
    world = GridWorld.from_text(text)
    moves, expected = moves_by_hand(text), np.zeros((world.n_states, world.n_states))
    for state, targets in enumerate(moves):
        expected[state, [target for target in targets if target != state]] = 1
    np.testing.assert_array_equal(world.adjacency(), expected)


@each_world
def test_sparse_results_equal_dense_ones(text):
    world = GridWorld.from_text(text, slip=0.1)
    policy = np.random.default_rng(4).dirichlet(np.ones(4), size=world.n_states)
    sparse_T = world.transition_matrix(policy, sparse_result=True)
    np.testing.assert_array_equal(sparse_T.toarray(), world.transition_matrix(policy))
    for loops in (False, True):
        sparse_W = world.adjacency(loops, sparse_result=True)
        np.testing.assert_array_equal(sparse_W.toarray(), world.adjacency(loops))
        assert (sparse_W.data != 0).all()


# --- random walks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slip", [0.0, 0.3], ids=["firm", "slippery"])
@pytest.mark.parametrize("kind", ["uniform", "always up", "mixed"])
@pytest.mark.parametrize("text", [WORLDS["four_rooms"], DOORS], ids=["four_rooms", "doors"])
def test_walks_visit_states_as_often_as_powers_of_T_say(text, kind, slip):
    """Sampling and T are written separately; here they have to agree, within 4 standard errors."""
    world = GridWorld.from_text(text, slip=slip)
    n, walks, start = world.n_states, 20_000, world.n_states - 2
    mixed = np.tile([0.1, 0.2, 0.3, 0.4], (n, 1))
    policy = {"uniform": None, "always up": always(UP, n), "mixed": mixed}[kind]
    T = world.transition_matrix(policy)
    visited = world.random_walks(start, walks, 12, np.random.default_rng(5), policy)
    assert visited.shape == (walks, 13)
    assert (visited[:, 0] == start).all()
    for t in (1, 2, 5, 12):
        chance = np.linalg.matrix_power(T, t)[start]
        seen = np.bincount(visited[:, t], minlength=n) / walks
        assert (seen[chance == 0] == 0).all(), f"an impossible state after {t} steps"
        rare = chance * walks < 10  # too few for a normal error: one state together
        chance, seen = (np.append(share[~rare], share[rare].sum()).clip(0, 1) for share in (chance, seen))
        error = np.sqrt(chance * (1 - chance) / walks) + 1 / walks
        assert (np.abs(seen - chance) <= 4 * error).all(), f"after {t} steps"


def test_walks_repeat_with_their_seed():
    world = GridWorld.named("four_rooms", slip=0.1)
    one, same, other = (world.random_walks(0, 5, 50, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("\n\r\n", "empty"),
        ("   \n  ", "empty"),
        ("XX#\n###", "walls only.*line 1, column 1"),
        ("...\n..\n...", "Line 2 .*2 characters.*line 2, column 3"),
        ("..\n...", "Line 2 .*3 characters.*line 2, column 3"),
        ("..\n\n..", "Line 2 .*0 characters.*line 2, column 1"),
        ("...\n.a.", "'a' at line 2, column 2"),
        ("...\n..?\n?..", r"'\?' at line 2, column 3"),
        (".. \n...", "' ' at line 1, column 3"),
        (".\t.", r"'\\t' at line 1, column 2"),
        ("..X.", "2 parts.*line 1, column 4"),
        ("...\nXXX\n...\nXXX\nX.X", "3 parts.*line [35], column [12]"),
        (".X\nX.", "2 parts.*line [12], column [12]"),
        ("A..\n.A.", "'A' stands twice.*line 2, column 2"),
        ("...\n.>X", "'>' at line 2, column 2 opens into a wall"),
        ("X..\n^..", r"'\^' at line 2, column 1 opens into a wall"),
        ("..\n.v", "'v' at line 2, column 2 opens into a wall"),
        ("<..", "'<' at line 1, column 1 opens into a wall"),
        ("..\n.>", "'>' at line 2, column 2 opens into a wall"),
        ("..\n<.\n.^\n.>", "'<' at line 2, column 1|'>' at line 4, column 2"),
    ],
)
def test_bad_maps_are_refused_with_line_and_column(text, message):
    """A map that cannot be a world must stop with the place of its fault, not with wrong numbers later on."""
    with pytest.raises(MapError, match=message):
        GridWorld.from_text(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_of_any_system_and_blank_lines_around_are_fine(newline):
    """A map saved on Windows is the same world."""
    lines = ["X.A", "..v", "#.."]
    world = GridWorld.from_text(newline * 2 + newline.join(lines) + newline * 2)
    np.testing.assert_array_equal(world.next_state, moves_by_hand("\n".join(lines)))
    with pytest.raises(MapError, match="line 3, column 2"):
        GridWorld.from_text(newline.join(["X.A", "..v", "#?."]))


@pytest.mark.parametrize("slip", [-0.01, 1.01, float("nan"), float("inf")])
def test_slip_is_a_probability(slip):
    with pytest.raises(ValueError, match="slip"):
        GridWorld.from_text("..", slip=slip)
    with pytest.raises(ValueError, match="slip"):
        GridWorld.named("four_rooms", slip=slip)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((2, 4), 0.25), r"\(3, 4\).*\(2, 4\)"),
        (np.full((4, 3), 0.25), r"\(3, 4\).*\(4, 3\)"),
        (np.full(4, 0.25), r"\(3, 4\)"),
        ([[1, 0, 0, 0], [0.5, 0, 0, 0], [1, 0, 0, 0]], "Row 1 "),
        ([[1, 0, 0, 0], [1, 0, 0, 0], [1.5, -0.5, 0, 0]], "Row 2 "),
        (np.full((3, 4), np.nan), "Row 0 "),
    ],
)
def test_bad_policies_are_refused(policy, message):
    """Otherwise T would not be stochastic, and walks would follow something else than T says."""
    world = GridWorld.from_text("...")
    with pytest.raises(ValueError, match=message):
        world.transition_matrix(policy)
    with pytest.raises(ValueError, match=message):
        world.random_walks(0, 2, 2, np.random.default_rng(0), policy)


def test_values_of_the_wrong_shape_are_refused():
    world = GridWorld.from_text("..\n.X")
    for values in (np.zeros(4), np.zeros((3, 1)), 1.0):
        with pytest.raises(ValueError, match="3 states"):
            world.to_grid(values)


def test_indented_drawings_and_other_line_ends_are_the_same_map():
    plain = GridWorld.from_text("XXXX\nX..X\nXXXX")
    indented = GridWorld.from_text("""
        XXXX
        X..X
        XXXX
    """)
    windows = GridWorld.from_text("XXXX\r\nX..X\r\nXXXX\r\n")
    assert plain.text == indented.text == windows.text


def test_a_map_of_ones_own_by_its_path(tmp_path):
    (tmp_path / "mine.txt").write_text("XXXX\nX..X\nXXXX\n")
    world = GridWorld.named(str(tmp_path / "mine.txt"), slip=0.1)
    assert (world.name, world.n_states, world.slip) == ("mine", 2, 0.1)
    with pytest.raises(MapError, match="give its whole path"):
        GridWorld.named(str(tmp_path / "nobody.txt"))


def test_walks_take_a_seed_and_whole_states_only():
    world = GridWorld.named("four_rooms")
    np.testing.assert_array_equal(world.random_walks(0, 2, 9, 5), world.random_walks(0, 2, 9, np.random.default_rng(5)))
    with pytest.raises(ValueError, match=r"start must be a state's number, got 0\.7"):
        world.random_walks(0.7, 2, 9, 5)


@each_world
def test_a_valve_changes_one_tile_and_cuts_nothing_off_if_it_can(text):
    world = GridWorld.from_text(text)
    try:
        turned, door = with_valve(world)
    except MapError:
        assert not [(s, a) for s in range(world.n_states) for a in (1, 2) if s not in world.next_state[s, [a, a - 2]]]
        return
    (row, col), grid = world.cells[door], turned.characters.copy()
    assert grid[row, col] in ">v"
    grid[row, col] = world.characters[row, col]
    assert (grid == world.characters).all()
    assert np.unique(turned.next_state[door]).size == 2  # it can be left one way only
