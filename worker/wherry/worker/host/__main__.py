"""Runs the sidecar host of a machine: `python -m wherry.worker.host --socket PATH` and the options below."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wherry.contract import telemetry
from wherry.contract.errors import WherryError
from wherry.worker.host.server import HostServer

EXIT_CONFIG: Final = 2
REMOVALS_MAX: Final = 10
REMOVAL_PAUSE_S: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop, or until the parent has ended."""
    parser = argparse.ArgumentParser(prog="wherry.worker.host", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="where to listen; its folder must be ours alone")
    parser.add_argument("--parent-pid", type=int, default=0, help="end when this process has ended")
    parser.add_argument("--remove", type=Path, help="the parent's own folder, removed when it could not do it itself")
    options = parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    # Ctrl-C in a terminal reaches us too, but the coordinator needs the sidecars to drain its leases.
    signal.signal(signal.SIGINT, signal.SIG_IGN if options.parent_pid else lambda *_: over.set())
    try:
        flush = telemetry.setup("wherry-host")
        server = HostServer(options.socket.absolute())
    except WherryError as error:
        sys.stderr.write(f"the sidecar host cannot start: {error}\n")
        return EXIT_CONFIG
    server.loop.adopt_orphans()
    orphaned = threading.Event()

    def end_as_orphan() -> None:
        orphaned.set()
        over.set()

    if options.parent_pid:
        server.loop.watch(options.parent_pid, end_as_orphan)
    over.wait()
    server.close()
    flush()
    if orphaned.is_set() and options.remove is not None:
        _remove(options.remove)
    return 0


def _remove(directory: Path) -> None:
    """Remove what a killed parent has left; its other children may still be writing there while they end."""
    for _ in range(REMOVALS_MAX):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(REMOVAL_PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
