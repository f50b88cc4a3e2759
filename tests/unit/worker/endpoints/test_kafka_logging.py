"""librdkafka's log lines, not in floods."""

from __future__ import annotations

import logging

from wherry.worker.endpoints.kafka_logging import OncePerKind, client_logger


def line(facility: str, text: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("x", level, "", 0, "%s [%s] %s", (facility, "client", text), None)


def test_lines_of_one_kind_pass_once_in_a_while() -> None:
    once = OncePerKind(3600.0)
    assert once.filter(line("FAIL", "refused after 0 ms"))
    assert not once.filter(line("FAIL", "refused after 1 ms"))
    assert OncePerKind(0.0).filter(line("FAIL", "again"))


def test_lines_of_another_kind_or_level_pass_beside_them() -> None:
    once = OncePerKind(3600.0)
    assert once.filter(line("FAIL", "x"))
    assert once.filter(line("GETPID", "x"))
    assert once.filter(line("FAIL", "x", logging.WARNING))


def test_a_client_has_one_logger_with_one_filter() -> None:
    assert client_logger("c") is client_logger("c")
    assert len(client_logger("c").filters) == 1
