"""What a plain `pip install eigenlib` leaves out."""

from importlib.util import find_spec


def needed(module: str, extra: str) -> None:
    """Say which extra brings a module that is not there. It is looked for and not imported: torch takes seconds."""
    try:
        there = find_spec(module) is not None
    except ImportError:
        there = False
    if not there:
        raise ImportError(f"{module} is not installed: it comes with pip install 'eigenlib[{extra}]'.")
