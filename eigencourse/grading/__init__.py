"""Marks for strangers' notebooks: `eigenlib grade` (SECURITY.md says what its sandbox promises)."""
