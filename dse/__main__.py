"""``python -m dse`` is the command ``dse``, and so is what the installed command calls."""

import sys

__all__ = ["run"]


def run() -> None:
    """Runs the command line; Ctrl-C ends it quietly even while it is being loaded."""
    try:
        from dse.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(3)


if __name__ == "__main__":
    run()
