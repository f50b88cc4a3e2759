"""Transformations that sidecars run, as coordinator and worker agree on them."""

from __future__ import annotations

from typing import Final

# How long a sidecar may take for a batch: the engine's own key among those of the class.
TIMEOUT_KEY: Final = "wherry.timeout.ms"
TIMEOUT_MS_DEFAULT: Final = 60_000
TIMEOUT_MS_MAX: Final = 3_600_000
# Keys of a transformation that are not for its class.
ENGINE_KEYS: Final = frozenset({"type", "plugin.version", "predicate", "negate", TIMEOUT_KEY})
