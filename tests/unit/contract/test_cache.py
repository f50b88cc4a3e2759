"""Where things are kept for a user, by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.contract.cache import CACHE_VARIABLE, cache_folder


def test_the_cache_follows_its_own_variable_then_the_desktop_standard_then_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/someone/.cache/wherry")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/wherry")
    monkeypatch.setenv(CACHE_VARIABLE, "~/own")
    assert cache_folder() == Path("/home/someone/own")
