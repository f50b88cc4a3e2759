"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_jdbc.sink import AivenJdbcSink, ConfluentJdbcSink, DebeziumJdbcSink

serve(ConfluentJdbcSink, AivenJdbcSink, DebeziumJdbcSink)
