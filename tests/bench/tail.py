"""Reads a growing file and stamps each line at the moment it can be read, woken by the kernel (inotify)."""

from __future__ import annotations

import ctypes
import os
import select
import threading
import time
from pathlib import Path
from typing import Self

IN_MODIFY = 0x00000002
IN_NONBLOCK = os.O_NONBLOCK
EVENT_BYTES = 4096
POLL_MS = 100
JOIN_SECONDS = 5.0


class Tail:
    """Collects (arrival in ns, line) of every whole line written to a file after it was opened."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.lines: list[tuple[int, bytes]] = []
        self._path = path
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail", daemon=True)
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = libc.inotify_init1(IN_NONBLOCK)
        if self._inotify < 0 or libc.inotify_add_watch(self._inotify, os.fsencode(path), IN_MODIFY) < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {path}: {os.strerror(ctypes.get_errno())}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(JOIN_SECONDS)
        os.close(self._inotify)

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._inotify, select.POLLIN)
        rest = b""
        with self._path.open("rb", buffering=0) as file:
            while not self._over.is_set():
                if poller.poll(POLL_MS):
                    os.read(self._inotify, EVENT_BYTES)
                content = file.read()
                now = time.time_ns()
                if content:
                    *whole, rest = (rest + content).split(b"\n")
                    self.lines.extend((now, line) for line in whole)
