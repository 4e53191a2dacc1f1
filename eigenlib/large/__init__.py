"""The same in worlds too large for dense matrices and for all pairs of states (notebook 07)."""
