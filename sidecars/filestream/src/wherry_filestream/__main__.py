"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_filestream.sink import FileStreamSink
from wherry_filestream.source import FileStreamSource

serve(FileStreamSource, FileStreamSink)
