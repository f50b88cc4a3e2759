"""`wherry mirror` as a user starts it, on MirrorMaker's own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.standalone import Standalone


class Mirror(Standalone):
    """One `wherry mirror` of a file with one flow.

    Args:
        file: What MirrorMaker's file says.
        target: Alias of the flow's target.
        directory: Folder for its files, which stays; None makes one that goes with it.
    """

    command = "mirror"

    def __init__(self, file: Mapping[str, str], *, target: str, directory: Path | None = None) -> None:
        super().__init__(bootstrap="", directory=directory)
        # Where REST listens is all that is added, so that the tests can ask.
        self._settings = {**file, f"{target}.listeners": self.rest.url}
