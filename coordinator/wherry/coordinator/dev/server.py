"""What servers for development have in common: they are context managers, and most of them are one process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from wherry.coordinator.dev.folders import ServerFolder
from wherry.coordinator.dev.process import KeptProcess


class Server(ABC):
    """Something that `start` starts and `close` ends; `with` does both, and closes what failed to start."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def start(self) -> Self:
        """Start it and wait until it answers."""

    @abstractmethod
    def close(self) -> None:
        """Stop it and delete its folder when it is temporary. Does nothing the second time."""


class ProcessServer(Server):
    """A server that is one process with a folder.

    Args:
        folder: Where its data and its log are.
    """

    def __init__(self, folder: ServerFolder) -> None:
        self._folder = folder
        self._process: KeptProcess | None = None

    @property
    def pid(self) -> int:
        """Its process id. Only after `start`."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.is_running

    @property
    @abstractmethod
    def log_path(self) -> Path:
        """The file that takes its log."""

    def stop(self) -> None:
        """Shut it down cleanly and keep its folder. Does nothing when it does not run."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it at once, as a crash would, and keep its folder."""
        if self._process is not None:
            self._process.kill()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for it to end; tell whether it did within the time."""
        return self._process is None or self._process.wait(timeout_s)

    def last_words(self) -> str:
        """Return the end of the log, for who tells that it ended by itself."""
        return self._process.last_words() if self._process is not None else "it was not started."

    def close(self) -> None:
        """Stop it and delete its folder when it is temporary."""
        self.stop()
        self._folder.discard()
