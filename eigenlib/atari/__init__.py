"""The same four steps from pixels: a world one can only look at, its deep SR, its eigenpurposes, its options (§3.3, §4.2)."""

from importlib.util import find_spec

from eigenlib._extras import missing

# Looked for, not imported: emulators run in processes of their own, which need no torch and should not wait for it.
for _package in ("torch", "ale_py", "safetensors"):
    if find_spec(_package) is None:
        raise ImportError(missing(_package, "atari"), name=_package)
