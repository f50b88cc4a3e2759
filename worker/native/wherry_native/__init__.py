"""The compiled helper of Wherry's workers: where its library is. What is in it, the worker knows."""

from __future__ import annotations

from pathlib import Path

LIBRARY = Path(__file__).with_name("libwherry_native.so")
