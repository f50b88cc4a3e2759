"""Requirements of Python versions."""

from __future__ import annotations

import pytest

from wherry.worker.host.versions import satisfies


@pytest.mark.parametrize(
    "requirement", ["", ">=3.11", ">=3.11,<4", "==3.11.*", "==3.11", "~=3.11", ">3.10", "!=3.12", "<=3.11", "< 3.12"]
)
def test_a_version_within_the_requirement_is_accepted(requirement: str) -> None:
    assert satisfies((3, 11, 7), requirement) is True


@pytest.mark.parametrize("requirement", [">=3.12", "<3.11", "==3.12.*", ">3.11", "!=3.11", "~=3.10.1", ">=3.9,<3.11"])
def test_a_version_outside_the_requirement_is_refused(requirement: str) -> None:
    assert satisfies((3, 11, 7), requirement) is False


def test_a_requirement_that_is_not_understood_is_left_to_uv() -> None:
    assert satisfies((3, 11, 7), "pypy") is None
