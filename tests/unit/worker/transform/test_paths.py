"""Paths to fields, taken apart as Kafka Connect does; the table was recorded from Kafka Connect 4.3.1."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.worker.transform.paths import Path

CASES = json.loads((File(__file__).parents[3] / "cases/paths.json").read_text())


@pytest.mark.parametrize(("version", "text", "steps"), CASES)
def test_a_path_has_kafka_connects_steps_or_its_refusal(version: str, text: str, steps: Any) -> None:
    if isinstance(steps, dict):
        with pytest.raises(ConfigError) as refused:
            Path(text, version)
        assert str(refused.value) == steps["error"][1]
    else:
        assert list(Path(text, version).steps) == steps
