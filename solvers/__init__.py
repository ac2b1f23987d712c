"""Solvers, one a file, found by the entry points ``dse.solvers``. Imported as ``dse.solvers``."""
