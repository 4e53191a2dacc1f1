"""eigenlib: the thin helper library behind the eigenoption notebooks.

Algorithm 1 of Machado et al. (ICLR 2018) is the way through the package, one module a step:
worlds and gridworld (the world) → representation (Ψ or L) → eigenpurposes (their eigenvectors) → eigenoptions (their policies).
"""

from eigenlib import _moved

__version__ = "0.2.0"
_moved.install()
