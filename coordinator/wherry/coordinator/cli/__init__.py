"""The command line `wherry`. Each command lives in a module of its own that offers `register(app)`; see `app.py`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    # Imported here, so that the modules of commands may import this package's others without a cycle.
    from wherry.coordinator.cli.app import run

    sys.exit(run(sys.argv[1:]))
