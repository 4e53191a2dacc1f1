"""eigenlib: eigenoption discovery through the (deep) successor representation, Machado et al., ICLR 2018.

Algorithm 1 of the paper is the way through the package, one module a step, from a maze to Atari's pixels:

    world = GridWorld.named("four_rooms")                                # the world
    psi = successor_representation(world.transition_matrix(), 0.9)       # LearnRepresentation
    purposes = extract_eigenpurposes(psi)                                # ExtractEigenpurposes
    options = discover_eigenoptions(world, purposes, 8)                  # LearnEigenoption
    diffusion_time(world, options).median                                # does it explore?
    q_learning(world, options, start=(11, 1), goal=(1, 11)).returns      # does it earn?

Every name in `__all__` can be imported from here, and costs nothing until it is. One evening's reading, in this order:

    worlds            what any finite world must say: n_states, n_actions, outcomes()
    gridworld         worlds drawn with characters
    representation    the Laplacian and the SR, exact and learned by TD
    eigenpurposes     their eigenvectors, the smooth ones first
    eigenoptions      the policy that climbs an eigenvector, and the proof that it ends
    diffusion         how long a walk takes from anywhere to anywhere, exactly
    control           Q-learning that explores with options
    atari.pixels      the same mazes as pictures
    atari.network     the network that sees, reconstructs the next frame and has an SR
    atari.learning    its losses, and one step of learning
    atari.options     eigenpurposes of what it has learned, followed one step ahead

Beside the path: `comparing` (spaces against spaces), `canonical` (the same vectors on every machine), `options` (what an
option is), `finite_world` and `one_way` (more worlds), `large` (a million states), `experiments`, `plots` and `widgets`.
Below it: `_require` (what refusals share), `_compiled` (all loops of numba: Eq. 2 and the Q update among them), `_dynamics`,
`_hitting` and `_map_text` (parts of worlds, diffusion and gridworld), `storage` and `paths`.
"""

from importlib import import_module

from eigenlib import _moved

_PUBLIC = {
    "worlds": ("World",),
    "finite_world": ("FiniteWorld",),
    "gridworld": ("GridWorld", "MapError", "map_names"),
    "one_way": ("with_valve",),
    "representation": ("laplacian", "learn_successor_representation", "successor_representation"),
    "eigenpurposes": ("Eigenpurposes", "extract_eigenpurposes", "sr_eigenpurposes"),
    "canonical": ("fix_signs",),
    "comparing": (
        *("alignment", "eigenspaces", "match_signs", "principal_cosines", "relative_error", "residuals", "rotated"),
    ),
    "eigenoptions": ("discover_eigenoptions", "learn_eigenoption"),
    "options": ("Option", "follow", "random_subgoal_options", "subgoal_option"),
    "diffusion": ("DiffusionCurve", "DiffusionTime", "DiffusionWarning", "diffusion_curve", "diffusion_time"),
    "control": ("Learned", "optimal_return", "q_learning"),
    "large.rooms": ("big_rooms",),
    "large.sampled_diffusion": ("SampledDiffusionTime", "sampled_diffusion_time"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = list(_HOME)
__version__ = "0.2.0"
_moved.install()


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'eigenlib' has no attribute {name!r}")
    return getattr(import_module(f"eigenlib.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
