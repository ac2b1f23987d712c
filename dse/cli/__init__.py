"""The command ``dse``. Importing it costs click and nothing else; each sub-command is loaded when it is run."""

from dse.cli.group import main

__all__ = ["main"]
