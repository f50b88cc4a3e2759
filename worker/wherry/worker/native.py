"""The optional compiled helper, `wherry-native`: reads Kafka and JSON into Arrow's buffers without Python's objects.

Everything it does is done in Python as well, with the same results; it is used where it is installed, unless switched
off by the worker's setting `wherry.native.enabled` or the variable WHERRY_NATIVE=off. A library of another make than
this worker's is left alone.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import logging
import os
from pathlib import Path
from typing import Any, Final

ABI: Final = 6
SETTING: Final = "wherry.native.enabled"
VARIABLE: Final = "WHERRY_NATIVE"

# Where `worker/native/compile.py` puts it.
_IN_TREE: Final = Path(__file__).parents[2] / "native" / "wherry_native" / "libwherry_native.so"

_log = logging.getLogger(__name__)
_switched_on = True


def library() -> Any:
    """Returns the library, or None where it is not there or switched off."""
    return _loaded() if _switched_on else None


def switch(on: bool) -> None:
    """Turns the use of the library on or off, for all leases of this process from now on."""
    global _switched_on
    _switched_on = on


def why_not() -> str:
    """Says why the library isn't used; empty when it is."""
    if not _switched_on:
        return f"{SETTING}=false"
    _loaded()
    return _trouble


_trouble = ""


@functools.cache
def _loaded() -> Any:
    global _trouble
    if os.environ.get(VARIABLE, "").lower() in {"off", "false", "0"}:
        _trouble = f"{VARIABLE}=off"
        return None
    path = _path()
    if path is None:
        _trouble = "not built"
        return None
    try:
        loaded = ctypes.CDLL(str(path))
        abi = loaded.wherry_native_abi()
    except (OSError, AttributeError) as error:
        _trouble = f"it can't be loaded: {error}"
    else:
        if abi == ABI:
            return loaded
        _trouble = f"it is of make {abi}, and this worker's is {ABI}"
    _log.warning("wherry-native is not used: %s.", _trouble)
    return None


def _path() -> Path | None:
    """Returns where the library is: in the source tree that this is part of, or installed."""
    path = _IN_TREE
    if not path.exists():
        try:
            path = importlib.import_module("wherry_native").LIBRARY
        except ImportError:
            return None
    return path if path.exists() else None
