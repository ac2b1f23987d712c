"""Reports and plots, one a file, found by the entry points ``dse.reports``. Imported as ``dse.reports``."""
