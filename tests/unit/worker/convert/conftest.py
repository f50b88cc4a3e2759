"""Fixtures of the converters' tests."""

from __future__ import annotations

from tests.support.natively import both_ways, helper

__all__ = ["both_ways", "helper"]
