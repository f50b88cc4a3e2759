"""Dead letter topics: what a letter tells about its record, and sending records back where they came from.

`letters.py` decides, without any I/O; `replay.py` reads, sends and keeps the progress in a consumer group.
"""

from __future__ import annotations

from wherry.coordinator.dlq.letters import Left, Letter, Resend, Rules, decide
from wherry.coordinator.dlq.replay import Replay, Replayed

__all__ = ["Left", "Letter", "Replay", "Replayed", "Resend", "Rules", "decide"]
