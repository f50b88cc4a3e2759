"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_spooldir.source import SpoolDirCsvSource, SpoolDirSource

serve(SpoolDirSource, SpoolDirCsvSource)
