"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_datagen.source import ConfluentDatagenSource, DatagenSource

serve(DatagenSource, ConfluentDatagenSource)
