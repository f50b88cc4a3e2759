"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_mirror.checkpoint import MirrorCheckpoint
from wherry_mirror.heartbeat import MirrorHeartbeat
from wherry_mirror.source import MirrorSource

serve(MirrorSource, MirrorCheckpoint, MirrorHeartbeat)
