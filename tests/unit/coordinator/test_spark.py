"""What is told of jobs of Spark's that fail, without starting it."""

from __future__ import annotations

import re

import pytest

from wherry.coordinator.spark import _job_failure


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Job aborted.\nModuleNotFoundError: No module named 'wherry.worker'\n\tat x",
            r"has no Wherry: install wherry",
        ),
        ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version", r"another version"),
        ('java.io.IOException: Cannot run program "/opt/python": error=2', r"can't start Python"),
        ("Job 3 cancelled part of cancelled job group", r"was cancelled"),
        ("a\n  java.lang.OutOfMemoryError: x\n org.SomeException: why\n", r"failed: org\.SomeException: why\."),
        ("", r"failed: RuntimeError\."),
    ],
)
def test_why_a_job_has_failed_is_told_in_a_sentence(text: str, told: str) -> None:
    sentence = _job_failure(RuntimeError(text))
    assert re.search(told, sentence), sentence
    assert "\n" not in sentence
