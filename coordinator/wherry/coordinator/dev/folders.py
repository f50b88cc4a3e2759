"""Working folders of local servers: the user's own, which are kept, or temporary ones, which go with the server."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wherry.coordinator.dev.errors import ServerStartError


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """Where a server keeps its files.

    Attributes:
        path: An existing folder.
        is_temporary: Whether it is deleted with the server.
    """

    path: Path
    is_temporary: bool

    @property
    def removable(self) -> tuple[Path, ...]:
        """What has to be deleted when the owner dies."""
        return (self.path,) if self.is_temporary else ()

    def discard(self) -> None:
        """Delete the folder when it is temporary."""
        if self.is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)


def server_folder(name: str, wanted: Path | None) -> ServerFolder:
    """Return the wanted folder, made if need be, or else a new temporary one.

    Raises:
        ServerStartError: The folder cannot be made or written to.
    """
    if wanted is None:
        folder = ServerFolder(Path(tempfile.mkdtemp(prefix=f"wherry-{name}-")), is_temporary=True)
        # For who never closes its server. While a server runs its keeper sees to it, however we end.
        atexit.register(_discard_at_exit, folder, os.getpid())
        return folder
    path = wanted.expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServerStartError(
            f"The folder {path} for {name} cannot be made: {error.strerror}.", "Choose another folder."
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ServerStartError(f"The folder {path} for {name} is not writable.", "Choose another folder.")
    return ServerFolder(path, is_temporary=False)


def _discard_at_exit(folder: ServerFolder, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child inherits this duty without having it
        folder.discard()
