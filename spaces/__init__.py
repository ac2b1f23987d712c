"""Shipped spaces, one a folder, found by the entry points ``dse.spaces``. Imported as ``dse.spaces``."""
