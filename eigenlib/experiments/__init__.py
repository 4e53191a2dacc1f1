"""What takes longer than a lesson may: one file for each experiment, and its stored results (data/reference)."""

from eigenlib import _moved


def __getattr__(name: str) -> object:
    return _moved.name_of(__name__, name)
