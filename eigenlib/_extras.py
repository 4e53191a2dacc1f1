"""Parts that are installed on request (`pip install 'eigenlib[atari]'`): where one is missing, one sentence names it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

NAMES = {"torch": "PyTorch", "ale_py": "ale-py"}  # as people call them


def needed(module: str, extra: str) -> ModuleType:
    """Import a module; where its package is missing, say which extra brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name != module.partition(".")[0]:
            raise
        raise ImportError(missing(problem.name, extra), name=problem.name) from None


def missing(package: str, extra: str = "") -> str:
    """What to say where a package is not there; without a word on which extra brings it, the course's."""
    extra = extra or ("atari" if package in ("torch", "ale_py", "safetensors") else "course")
    return f"{NAMES.get(package, package)} is not installed: pip install 'eigenlib[{extra}]'."
