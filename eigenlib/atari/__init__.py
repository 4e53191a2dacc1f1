"""The same four steps from pixels: a world one can only look at, its deep SR, its eigenpurposes, its options (§3.3, §4.2)."""

from eigenlib._extras import needed

for _module in ("torch", "safetensors", "ale_py"):
    needed(_module, "atari")
