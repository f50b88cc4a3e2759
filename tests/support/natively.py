"""Tests that run twice: with the compiled helper of the workers and without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wherry.worker import native


@pytest.fixture(scope="module", params=["python", "native"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[str]:
    """Switches the helper off, then on; where it isn't built there is nothing to switch on."""
    native.switch(request.param == "native")
    if request.param == "native" and native.library() is None:
        pytest.skip(f"wherry-native: {native.why_not()}")
    yield request.param
    native.switch(True)


@pytest.fixture
def helper() -> Iterator[None]:
    """Needs the helper, and switches it on again."""
    if native.library() is None:
        pytest.skip(f"wherry-native: {native.why_not()}")
    yield
    native.switch(True)
