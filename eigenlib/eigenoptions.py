"""From a direction to a way of behaving (LearnEigenoption, Alg. 1; notebook 04).

An eigenpurpose e pays the agent e[s′] − e[s] for a step s → s′ (Eq. 1). Give it one more action, `terminate`, worth 0,
and the best it can do is

    v(s) = max(0, max_a q(s, a)),    q(s, a) = Σ_s′ p(s′ | s, a) (e[s′] − e[s] + γ v(s′)).

The option follows argmax_a q where v > 0, its initiation set, and terminates where v = 0. Ties go to the first action; on
a map their order is up, right, down, left.

*It always terminates.* Suppose the policy could stay for ever in a closed set of states that all have v > 0, and let d be
its stationary distribution there. On that set v = r + γPv with r = (P − I)e, so dᵀv = dᵀr / (1 − γ) = 0, since dᵀP = dᵀ.
But dᵀv > 0. Slips, one-way doors and ties change nothing in this.

*Solved exactly.* Value iteration from v = 0 finds in its k-th sweep the best plan of at most k steps. Where nothing slips
a plan that terminates never returns to a state, so the sweeps end of themselves, with the exact v, after at most S + 1.
With slips v grows towards its limit and we stop when a sweep changes it by no more than rounding does.

*What counts as zero.* A constant eigenvector comes out of LAPACK as a constant plus noise, and noise must not become an
option. So "v > 0" means v > θ, a billionth of max |e|, and q's tie when they differ by at most (1 − γ) θ/2. With ties that
wide, the sum above reads dᵀv ≤ θ/2 instead of 0, so options still terminate. (Rounding alone adds about 10⁻¹⁶ max |e| to
dᵀv in a sweep: it would take millions of sweeps to reach θ, and there are hundreds.)
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu

from eigenlib import _require
from eigenlib._require import require_discount, require_generator, require_positive, require_seed, require_state
from eigenlib.eigenpurposes import Eigenpurposes
from eigenlib.worlds import World, require_world

_ZERO = 1e-9  # × max |e|: far above the noise of an eigenvector (1e-13), far below any step worth taking
_BATCH = 10_000_000  # values of states, of all the directions solved together
_EPS = float(np.finfo(float).eps)
_LARGE = 50_000  # states from which on compiled sweeps save more time than numba takes to import


@dataclass(frozen=True, eq=False)
class Option:
    """Where an option may start, what it does there, where it ends (§2.1).

    policy: (S,) action in each state, −1 where it terminates.  initiation, termination: (S,) bool, one the other's
    complement.  value: (S,) v.  eigenpurpose: (S,) e, its sign included.  origin: (column of the eigenvector, ±1).
    """

    policy: np.ndarray
    initiation: np.ndarray
    termination: np.ndarray
    value: np.ndarray | None = None
    eigenpurpose: np.ndarray | None = None
    origin: tuple[int, int] | None = None


def learn_eigenoption(world: World, eigenpurpose, gamma: float = 0.9) -> Option:
    """The option that climbs an eigenpurpose best (Alg. 1; notebook 04).

    eigenpurpose: (S,) e.  γ in [0, 1).  A constant e gives an option that terminates everywhere and starts nowhere.
    """
    require_world(world)
    try:
        purpose = np.asarray(eigenpurpose)
    except ValueError:  # rows of several lengths
        purpose = np.asarray(None)
    if purpose.dtype.kind not in "biufc":
        raise ValueError(f"An eigenpurpose holds numbers, got {_require.shown(eigenpurpose)}.")
    if purpose.shape != (world.n_states,):
        raise ValueError(
            f"An eigenpurpose has one number for each of the {world.n_states} states, got shape {purpose.shape}: pass one "
            "column of purposes.vectors, or the whole to discover_eigenoptions."
        )
    return _solve(world, purpose[:, None], gamma)[0]


def discover_eigenoptions(
    world: World, purposes: Eigenpurposes, count: int | None = None, both_signs: bool = True, gamma: float = 0.9
) -> list[Option]:
    """The first `count` options of the eigenvectors in their order, each as e and then −e (Alg. 1; notebook 04).

    count: None for all there are.  Directions that yield no option are passed over: the constant eigenvector of the exact
    SR is one, the λ = 0 eigenvector of a Laplacian without self-loops is not. So is a vector that has come before: a matrix
    that cannot be diagonalised has the same one several times. `option.origin` tells which were used.
    """
    require_world(world)
    if not isinstance(purposes, Eigenpurposes):
        raise ValueError(
            f"purposes must be what extract_eigenpurposes returned, got {_require.shown(purposes)}; for one vector "
            "use learn_eigenoption."
        )
    both_signs = _require.flag(both_signs, "both_signs")
    vectors = np.asarray(purposes.vectors)
    if not np.iscomplexobj(vectors):
        vectors = _require.numbers(vectors, "purposes.vectors")
    if vectors.ndim != 2 or vectors.shape[0] != world.n_states:
        raise ValueError(
            f"These eigenvectors do not belong to this world: expected ({world.n_states}, k), got shape {vectors.shape}."
        )
    count = None if count is None else require_positive(count, "count")
    new = np.flatnonzero(~_repeated(vectors))
    origins = [(int(column), sign) for column in new for sign in ((1, -1) if both_signs else (1,))]
    options: list[Option] = []
    tried = 0
    while tried < len(origins) and (count is None or len(options) < count):  # no more directions than needed
        wanted = len(origins) if count is None else count - len(options)
        batch = origins[tried : tried + min(wanted, max(2, _BATCH // world.n_states))]
        columns, signs = np.array(batch).T
        found = _solve(world, vectors[:, columns] * signs, gamma, batch)
        options += [option for option in found if option.initiation.any()]
        tried += len(batch)
    if count is not None and len(options) < count:
        raise ValueError(
            f"{count} options were asked for, but the {vectors.shape[1]} eigenvectors given yield only {len(options)}: "
            + ("extract more eigenvectors or " if vectors.shape[1] < world.n_states else "")
            + ("ask for fewer." if both_signs else "use both signs, or ask for fewer.")
        )
    return options


def _repeated(vectors: np.ndarray) -> np.ndarray:
    """(k,) bool: whether a column of (S, k) points along one that has come before, up to its sign."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)
    return (np.abs(np.triu(unit.conj().T @ unit, 1)) > 1 - 1e-9).any(axis=0)


def follow(
    world: World, option: Option, start: int, steps: int | None = None, rng: int | np.random.Generator | None = None
) -> np.ndarray:
    """(L + 1,) the states on the option's way from `start` to where it ends, or for `steps` steps (notebook 04).

    rng: a seed or a Generator, used where actions have several outcomes; None is seed 0.  A start in which the option
    terminates gives the start alone.
    """
    ((policy,), _), here = require_options(world, [option]), require_state(world.n_states, start, "start")
    steps = None if steps is None else require_positive(steps, "steps", least=0)
    random, path, dynamics = np.random.default_rng(require_seed(rng)), [here], world.dynamics
    while policy[here] >= 0 and (steps is None or len(path) <= steps):
        ways = [int(ahead[here, policy[here]]) for _, ahead in dynamics]
        chances = [_of(chance, here, policy[here]) for chance, _ in dynamics]
        here = ways[0] if len(ways) == 1 else ways[random.choice(len(ways), p=chances)]
        path.append(here)
    return np.array(path)


def subgoal_option(world: World, goal: int) -> Option:
    """The option that goes to one state from everywhere by the shortest way and terminates there (notebook 05).

    Shortest is fewest expected steps, found by policy iteration; ties go to the first action. It starts
    where some policy reaches the goal surely: not where a one-way door is, or might be, in between.
    It always terminates: each step brings the expected steps to go, v, down by at least ½, a tie's tolerance included.
    """
    require_world(world)
    goal = require_state(world.n_states, goal, "A subgoal")
    states, ways = np.arange(world.n_states), world.dynamics
    sure, safe = states >= 0, np.ones((world.n_states, world.n_actions), dtype=bool)
    while True:  # sure shrinks to the states that reach the goal by actions which never leave it
        reached, policy = states == goal, np.full(world.n_states, -1)
        while True:
            # By the surest way, not by any: one that only a slip leads along may take longer than a float can say.
            nearer = safe * np.sum([p * reached[ahead] for p, ahead in ways], axis=0)
            new = (nearer > 0).any(axis=1) & ~reached
            if not new.any():
                break
            policy[new] = np.argmax(nearer[new], axis=1)
            reached = reached | new
        if (reached == sure).all():
            break
        sure, safe = reached, np.all([reached[ahead] for _, ahead in ways], axis=0)
    start = policy >= 0
    while True:
        system = sparse.csc_matrix(sparse.eye_array(world.n_states))
        for probability, ahead in ways:
            entries = (_of(probability, states, policy) * start, (states, ahead[states, policy]))
            system -= sparse.csc_matrix(entries, shape=system.shape)
        value = splu(system).solve(start.astype(float))
        steps = np.where(safe, 1 + np.sum([p * value[ahead] for p, ahead in ways], axis=0), np.inf)
        best = steps.min(axis=1)
        tie = np.minimum(_ZERO * best, 0.5)
        better = start & (best < value - tie)
        if not better.any():
            break
        policy[better] = np.argmin(steps[better], axis=1)
    policy = np.where(start, np.argmax(steps <= (best + tie)[:, None], axis=1), -1)
    return Option(policy=policy, initiation=start, termination=~start)


def random_subgoal_options(world: World, count: int, rng: int | np.random.Generator | None = None) -> list[Option]:
    """`count` subgoal options at states drawn uniformly, with repetition: there may be more options than states.

    rng: a seed, or a Generator to draw from; None is seed 0.
    """
    require_world(world)
    count = require_positive(count, "count")
    made: dict[int, Option] = {}
    goals = [int(goal) for goal in require_generator(rng).integers(world.n_states, size=count)]
    return [made[g] if g in made else made.setdefault(g, subgoal_option(world, g)) for g in goals]


def require_options(world: World, options) -> tuple[np.ndarray, np.ndarray]:
    """policies (K, S), −1 where an option ends, and starts (K, S), bool; or a sentence about the first one that is wrong.

    An option must belong to this world and be sure to end: from wherever it runs a way must lead to where it terminates.
    """
    require_world(world)
    if isinstance(options, Option):
        raise ValueError("options must be a list of options: put a single one in brackets.")
    several = np.iterable(options) and not isinstance(options, str | bytes | Mapping)
    options = list(options) if several else [options]  # once: a generator can be read only once
    n_states, n_actions = world.n_states, world.n_actions
    for k, option in enumerate(options):
        if not isinstance(option, Option):
            raise ValueError(
                f"options must be a list of eigenlib's options, but one of them is of type {type(option).__name__}."
            )
        shapes = [np.shape(part) for part in (option.policy, option.initiation, option.termination)]
        if shapes != [(n_states,)] * 3:
            raise ValueError(
                f"Option {k} was made for another world: its policy, initiation and termination have shapes {shapes}, but "
                f"this world has {n_states} states. Discover options in the world in which they are used."
            )
    policies, starts, ends = (
        _whole([getattr(option, part) for option in options], part, n_states, kind)
        for part, kind in (("policy", np.int64), ("initiation", bool), ("termination", bool))
    )
    for wrong, why in (
        (
            ~ends & ((policies < 0) | (policies >= n_actions)),
            "neither terminates in state {} nor names an action there",
        ),
        (starts & ends, "may start in state {}, where it terminates at once: let it do one or the other"),
    ):
        if wrong.any():
            k, s = np.argwhere(wrong)[0]
            raise ValueError(f"Option {k} {why.format(s)}.")
    policies[ends] = -1
    sure = _ends_surely(world, policies, ends)
    if not sure.all():
        k, s = np.argwhere(~sure)[0]
        raise ValueError(
            f"Option {k} never terminates once it is in {world.place(s)}: no way leads from there to where it ends."
        )
    return policies, starts


def _whole(parts: list, name: str, n_states: int, kind) -> np.ndarray:
    """(K, S) of that kind, or a sentence if that would change a number: a policy of 1.7 is no action."""
    given = np.array(parts).reshape(-1, n_states)
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all() or (given.astype(kind) != given).any():
        what = "whole numbers of actions" if kind is np.int64 else "True and False"
        raise ValueError(f"An option's {name} must hold {what}, but some entries are something else.")
    return given.astype(kind)


def _of(chance: float | np.ndarray, states, actions):
    """A probability of `World.dynamics` for some states and actions."""
    return chance[states, actions] if isinstance(chance, np.ndarray) else chance


def _ends_surely(world: World, policies: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(K, S) whether a way leads from s to where option k ends."""
    n_states, states = world.n_states, np.arange(world.n_states)
    ways = [np.where(ends, states, ahead[states, policies]) for _, ahead in world.dynamics]  # (K, S) each
    if len(ways) == 1:
        ahead = ways[0]
        for _ in range(n_states.bit_length()):  # paths of 1, 2, 4, … steps
            ahead = np.take_along_axis(ahead, ahead, axis=1)
        return np.take_along_axis(ends, ahead, axis=1)
    sure = np.zeros((len(ends), n_states + 1), dtype=bool)
    for k, done in enumerate(ends):  # backwards along all ways, from one more state that all ends are reached from
        towards = np.concatenate([ahead[k] for ahead in ways] + [np.full(done.sum(), n_states)])
        origin = np.concatenate([states] * len(ways) + [np.flatnonzero(done)])
        graph = sparse.csr_matrix((np.ones(len(origin)), (towards, origin)), shape=(n_states + 1, n_states + 1))
        sure[k, breadth_first_order(graph, n_states, return_predecessors=False)] = True
    return sure[:, :-1]


def _solve(world: World, purposes: np.ndarray, gamma: float, origins=None) -> list[Option]:
    """One option for each column of purposes, (S, k), all solved together."""
    require_discount(gamma)
    if not np.isrealobj(purposes):
        raise ValueError("An eigenpurpose must be real: take the real and the imaginary part as two directions.")
    purposes = purposes.astype(float)
    if not np.isfinite(purposes).all():
        raise ValueError("The eigenpurpose holds entries that are not finite numbers (NaN or ∞).")
    size = np.abs(purposes).max(axis=0)
    zero = _ZERO * size
    q = _action_values(world, purposes, gamma, 2 * _EPS * size)
    best = q.max(axis=0)
    initiation = best > zero
    policy = np.argmax(q >= best - (1 - gamma) * zero / 2, axis=0)
    policy[~initiation] = -1
    value = np.where(initiation, best, 0.0)
    return [
        Option(
            policy=policy[:, k].copy(),
            initiation=initiation[:, k].copy(),
            termination=~initiation[:, k],
            value=value[:, k].copy(),
            eigenpurpose=purposes[:, k].copy(),
            origin=None if origins is None else origins[k],
        )
        for k in range(purposes.shape[1])
    ]


def _action_values(world: World, purposes: np.ndarray, gamma: float, rounding: np.ndarray) -> np.ndarray:
    """(A, S, k) optimal q of k eigenpurposes, (S, k), by value iteration from zero (see the module's docstring)."""
    n_states, n_actions = world.n_states, world.n_actions
    if n_states > _LARGE:
        return _compiled_action_values(world, purposes, gamma, rounding)
    rows = np.arange(n_actions * n_states)
    ahead = sparse.csr_matrix((rows.size, n_states))  # row a·S + s: where action a leads from s
    for probability, states in world.dynamics:
        entries = (np.broadcast_to(probability, states.shape).T.ravel(), (rows, states.T.ravel()))
        ahead += sparse.csr_matrix(entries, shape=ahead.shape)
    shape = (n_actions, n_states, purposes.shape[1])
    reward = (ahead @ purposes).reshape(shape) - purposes
    value = np.zeros_like(purposes)
    while True:
        q = reward + gamma * (ahead @ value).reshape(shape)
        better = np.maximum(q.max(axis=0), 0.0)
        if not (better - value > rounding).any():  # never negative: from zero the sweeps only raise v
            return q
        value = better


def _compiled_action_values(world: World, purposes: np.ndarray, gamma: float, rounding: np.ndarray) -> np.ndarray:
    """The same by the same sweeps, one eigenpurpose in each thread: with a single outcome the same to the last digit."""
    from eigenlib import _kernels  # here, not above: it imports numba

    dynamics = world.dynamics
    ways = np.array([ahead for _, ahead in dynamics], dtype=np.int32)
    shape = ways.shape[1:] if any(np.ndim(chance) for chance, _ in dynamics) else (1, 1)
    chances = np.array([np.broadcast_to(chance, shape) for chance, _ in dynamics])
    q = np.empty((purposes.shape[1], world.n_actions, world.n_states))

    def run(k: int) -> None:
        purpose = np.ascontiguousarray(purposes[:, k])
        _kernels.climb(ways, chances, purpose, float(gamma), rounding[k], q[k])

    with ThreadPoolExecutor(_kernels.THREADS) as threads:
        list(threads.map(run, range(len(q))))
    return np.moveaxis(q, 0, -1)
