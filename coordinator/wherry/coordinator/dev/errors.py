"""What can go wrong with local servers, each told as one sentence with a remedy.

DevServerError                base; never raised itself
├── JavaError                 no Java, or one that is too old
├── ArtifactError             an artifact cannot be had
│   ├── ArtifactNotFoundError   the repositories answer, and have no such artifact
│   ├── NetworkUnavailableError the repositories cannot be reached, or broke off
│   └── ArtifactCorruptError    a cached or downloaded file is not the one expected
├── BinariesMissingError      a server's programs are not installed
├── PortTakenError            another process listens where we have to
└── ServerStartError          the server ended, or stayed silent past its deadline
"""

from __future__ import annotations


class DevServerError(Exception):
    """A local server cannot be had.

    Attributes:
        message: What is wrong and where, one sentence.
        remedy: What makes it right, one sentence; empty when nothing is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy


class JavaError(DevServerError):
    """Java is missing or too old."""


class ArtifactError(DevServerError):
    """A jar or archive cannot be had."""


class ArtifactNotFoundError(ArtifactError):
    """The repositories have no such artifact."""


class NetworkUnavailableError(ArtifactError):
    """The repositories cannot be reached."""


class ArtifactCorruptError(ArtifactError):
    """A file is not the one expected."""


class BinariesMissingError(DevServerError):
    """The programs of a server are not installed."""


class PortTakenError(DevServerError):
    """Another process listens on the port."""


class ServerStartError(DevServerError):
    """A server did not become ready."""
