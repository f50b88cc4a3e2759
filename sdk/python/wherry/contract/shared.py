"""Naming the connector in calls to a process that plans for several (`planning: shared` in the manifest).

The name travels in gRPC metadata, so that no message differs between a process of one connector and a shared one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

CONNECTOR_KEY: Final = "wherry-connector-bin"
"""Binary metadata, as a connector's name may have any characters."""
CONNECTORS_MAX: Final = 10_000
"""Connectors that one process plans for at most."""


def connector_metadata(connector: str) -> list[tuple[str, bytes]]:
    """Returns the metadata of a call about a connector; none for a process of its own ("")."""
    return [(CONNECTOR_KEY, connector.encode())] if connector else []


def connector_in(received: Sequence[tuple[str, Any]] | None) -> str:
    """Returns the connector that a call is about; "" when the process is the connector's own."""
    for key, value in received or ():
        if key == CONNECTOR_KEY:
            return value.decode() if isinstance(value, bytes) else str(value)
    return ""
