"""How a command fails: exit codes, and which error gets which.

A command raises; nobody but `app.run` prints errors or leaves the process.
"""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass


class ExitCode(enum.IntEnum):
    """What the shell sees. Part of the public interface: numbers never change their meaning.

    130 and 143 (128 + signal) mean that Ctrl-C or SIGTERM ended a command before it was done.
    """

    OK = 0
    CONFIG = 1  # a file or value is wrong
    USAGE = 2  # the command line itself is wrong
    ENVIRONMENT = 3  # this machine lacks something: Java, jars, network, a free port
    UNREACHABLE = 4  # no server answers at the address
    REFUSED = 5  # the server answered and said no
    NOT_FOUND = 6  # the server has no such thing
    FAILED = 7  # the work was begun and failed
    BUG = 70  # an error of ours


class CliError(Exception):
    """A command cannot go on.

    Attributes:
        message: What is wrong and where, one sentence.
        remedy: What makes it right, one sentence; empty when nothing is known.
        code: The process's exit code.
    """

    def __init__(self, message: str, remedy: str = "", *, code: ExitCode = ExitCode.CONFIG) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is shown.

    Attributes:
        code: Exit code.
        message: One sentence.
        remedy: One sentence or empty.
    """

    code: ExitCode
    message: str
    remedy: str = ""


# By class name: importing the modules of all errors only to compare would slow every command down.
_CODES = {
    "wherry.coordinator.dev.errors.DevServerError": ExitCode.ENVIRONMENT,
    "wherry.contract.errors.ConfigError": ExitCode.CONFIG,
    "wherry.contract.errors.AuthError": ExitCode.REFUSED,
    "wherry.contract.errors.TransientError": ExitCode.UNREACHABLE,
    "wherry.contract.errors.WherryError": ExitCode.FAILED,
}


def failure_of(error: Exception) -> Failure | None:
    """Return how to show an error that a command expects, or None for one that nobody foresaw."""
    if isinstance(error, CliError):
        return Failure(error.code, error.message, error.remedy)
    for name, code in _CODES.items():
        module, _, kind = name.rpartition(".")
        # An error's module is loaded, or there would be no such error.
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], kind)):
            return Failure(code, str(getattr(error, "message", error)), str(getattr(error, "remedy", "")))
    return None
