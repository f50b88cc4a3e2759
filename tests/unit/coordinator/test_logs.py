"""Log lines in both forms."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest

from wherry.coordinator import logs


@pytest.fixture
def line(monkeypatch):
    root = logging.getLogger()
    kept = root.handlers[:], root.level

    def log(form, *args, level=logging.INFO, **kwargs):
        stream = io.StringIO()
        logs.setup(form=form, stream=stream)
        logging.getLogger("a.b").log(level, *args, **kwargs)
        return stream.getvalue()

    yield log
    root.handlers[:], root.level = kept
    logging.captureWarnings(False)


def test_a_text_line_looks_like_kafka_connects(line):
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN hello x \(a\.b\)\n", line("text", "hello %s", "x", level=30)
    )


def test_a_text_line_names_the_connector_and_its_task(line):
    assert "INFO [orders|task-2] hi (" in line("text", "hi", extra={"connector": "orders", "task": 2})
    assert "INFO [orders] hi (" in line("text", "hi", extra={"connector": "orders"})


def test_a_json_line_is_one_object_with_whatever_the_record_carries(line):
    shown = json.loads(line("json", "two\nlines", extra={"connector": "c", "pid": 7}))
    assert shown.pop("timestamp").endswith("Z")
    assert shown == {"level": "INFO", "logger": "a.b", "message": "two\nlines", "connector": "c", "pid": 7}


def test_a_traceback_stays_within_its_json_line(line):
    try:
        raise ValueError("boom")
    except ValueError:
        text = line("json", "failed", exc_info=True)
    assert text.count("\n") == 1
    assert "ValueError: boom" in json.loads(text)["exception"]
