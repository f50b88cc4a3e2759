"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_table.sink import TableSink

serve(TableSink)
