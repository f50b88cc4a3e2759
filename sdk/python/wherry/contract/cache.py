"""Where Wherry keeps for a user what is costly to make: environments and descriptions of plugins, jars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "WHERRY_CACHE"


def cache_folder() -> Path:
    """The user's cache folder: WHERRY_CACHE, or `wherry` in XDG_CACHE_HOME or in ~/.cache."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wherry"
