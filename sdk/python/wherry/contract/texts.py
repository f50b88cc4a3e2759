"""Texts that have to fit: kept apart so that who only sends errors needn't load what records are made of."""

from __future__ import annotations


def cut_text(text: str, bytes_max: int) -> str:
    """Returns a text that is at most so many bytes of UTF-8 long, cut at a character."""
    data = text.encode(errors="replace")
    return text if len(data) <= bytes_max else data[: bytes_max - 3].decode(errors="ignore") + "…"
