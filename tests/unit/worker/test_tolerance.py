"""What is done with rows that can't be delivered."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Constants, RowError, of_value
from wherry.contract.errors import ConfigError, ErrorClass, SchemaError
from wherry.contract.position import Position
from wherry.worker.convert import DataError
from wherry.worker.convert.step import Stage, StageFailure, keep_rows
from wherry.worker.endpoints import FailedRow, Flushed, Remaining
from wherry.worker.endpoints.columns import headers_array
from wherry.worker.tolerance import (
    DeadLetterError,
    ErrorRules,
    GivenUp,
    Tolerance,
    ToleranceExceededError,
    row_failure,
    unread_failure,
)


class Letters:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.flushed = 0
        self.refused: list[FailedRow] = []
        self.closed = False

    def ready(self, timeout_s: float) -> bool:
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        self.batches.append(batch)

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        self.flushed += 1
        return Flushed()

    def failed_rows(self) -> list[FailedRow]:
        return self.refused

    def rewinds(self) -> tuple[Position, ...]:
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        return ()

    needs_flush = False
    stored: tuple[Position, ...] = ()
    trouble = ""

    def close(self) -> None:
        self.closed = True


def failure(row: int = 1, **headers: Any) -> StageFailure:
    batch = of_value(
        pa.array([b"a", b"b", b"c"], pa.binary()),
        constants=Constants("t", 3, 40),
        key=pa.array([None, b"k", None], pa.binary()),
        headers=headers_array([None, [("h", b"1"), ("__connect.errors.topic", b"old")], None]),
        timestamp=pa.array([1, 2, 3], pa.timestamp("ms", "UTC")),
    )
    return StageFailure(batch, row, Stage.VALUE_CONVERTER, "x.JsonConverter", DataError("It is damaged: "))


def seconds() -> float:
    return 5.0


def rules(**config: str) -> ErrorRules:
    return ErrorRules.of({f"errors.{key.replace('_', '.')}": value for key, value in config.items()}, sink=True)


ALL_WITH_LETTERS = {"tolerance": "all", "deadletterqueue_topic_name": "dead"}


def test_with_tolerance_a_row_is_skipped() -> None:
    assert Tolerance(rules(tolerance="all"), "c", 0, None).give_up([failure()]) == GivenUp(1, 0, failed=1)


def test_without_tolerance_the_task_fails_and_the_sentence_says_where_and_what_to_do() -> None:
    told = Tolerance(rules(), "c", 0, None).give_up([failure()])
    assert isinstance(told.error, ToleranceExceededError)
    assert str(told.error) == (
        "Tolerance exceeded in error handler: VALUE_CONVERTER with class x.JsonConverter failed for topic t, "
        "partition 3, offset 41: It is damaged. Set errors.tolerance=all to skip such records."
    )


def test_without_tolerance_the_row_still_goes_to_the_dead_letter_queue_first() -> None:
    letters = Letters()
    told = Tolerance(rules(deadletterqueue_topic_name="dead"), "c", 0, letters).give_up([failure()])
    assert isinstance(told.error, ToleranceExceededError)
    assert len(letters.batches) == 1
    assert letters.flushed == 1


def test_the_row_that_ends_the_task_is_counted_as_kafka_connect_counts_it() -> None:
    with_queue = rules(deadletterqueue_topic_name="dead", log_enable="true")
    told = Tolerance(with_queue, "c", 0, Letters()).give_up([failure(2), failure(0)])
    assert (told.failed, told.skipped, told.dead_letters, told.logged) == (1, 0, 1, 1)


def test_a_queue_that_refuses_the_last_letter_is_what_the_task_ends_with() -> None:
    letters = Letters()
    letters.refused = [FailedRow(None, 0, RowError(0, ErrorClass.SCHEMA, message="Too large."))]
    told = Tolerance(rules(deadletterqueue_topic_name="dead"), "c", 0, letters).give_up([failure()])
    assert isinstance(told.error, DeadLetterError)
    assert told.error.count == 1


def test_without_tolerance_only_the_first_bad_row_is_kept_because_later_ones_are_not_tried() -> None:
    letters = Letters()
    told = Tolerance(rules(deadletterqueue_topic_name="dead"), "c", 0, letters).give_up([failure(2), failure(0)])
    assert "offset 40" in str(told.error)
    assert [letter.value.to_pylist() for letter in letters.batches] == [[b"a"]]


def test_a_record_of_which_several_rows_were_made_and_refused_is_one_dead_letter() -> None:
    letters = Letters()
    raw = failure().raw
    # As a transformation leaves it: each row with the record it came from.
    twice = keep_rows(raw, [0, 1, 1, 1])
    refused = [StageFailure(twice, row, Stage.TASK_PUT, "x.Sink", DataError("No.")) for row in (1, 2, 3)]
    told = Tolerance(rules(**ALL_WITH_LETTERS), "c", 0, letters).give_up(refused)
    assert (told.skipped, told.dead_letters) == (1, 1)
    assert [letter.value.to_pylist() for letter in letters.batches] == [[b"b"]]


def test_rows_that_do_not_tell_where_they_came_from_are_dead_letters_each() -> None:
    letters = Letters()
    batch = of_value(pa.array([b"a", b"a"], pa.binary()))
    refused = [StageFailure(batch, row, Stage.TASK_PUT, "x.Sink", DataError("No.")) for row in (0, 1)]
    assert Tolerance(rules(**ALL_WITH_LETTERS), "c", 0, letters).give_up(refused).dead_letters == 2


def test_a_dead_letter_is_the_row_as_it_was_read() -> None:
    letters = Letters()
    told = Tolerance(rules(**ALL_WITH_LETTERS), "c", 0, letters).give_up([failure()])
    letter = letters.batches[0]
    assert told == GivenUp(1, 1, failed=1)
    assert letter.constants == Constants(topic="dead")
    assert letter.value.to_pylist() == [b"b"]
    assert letter.key is not None
    assert letter.key.to_pylist() == [b"k"]
    assert letter.stored("timestamp").cast(pa.int64()).to_pylist() == [2]
    assert [pair["name"] for pair in letter.headers[0].as_py()] == ["h", "__connect.errors.topic"]


def test_context_headers_come_after_the_rows_own_in_kafka_connects_order() -> None:
    letters = Letters()
    with_context = rules(**ALL_WITH_LETTERS, deadletterqueue_context_headers_enable="true")
    Tolerance(with_context, "c", 4, letters).give_up([failure()])
    headers = [(pair["name"], pair["value"]) for pair in letters.batches[0].headers[0].as_py()]
    assert headers[1] == ("__connect.errors.topic", b"old")
    own = [(name.removeprefix("__connect.errors."), value) for name, value in headers[2:]]
    assert own[:-1] == [
        ("topic", b"t"), ("partition", b"3"), ("offset", b"41"), ("connector.name", b"c"), ("task.id", b"4"),
        ("stage", b"VALUE_CONVERTER"), ("class.name", b"x.JsonConverter"),
        ("exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        ("exception.message", b"It is damaged: "),
    ]  # fmt: skip
    assert own[-1][0] == "exception.stacktrace"


def test_a_letter_of_what_a_sink_refused_names_kafka_connects_sink_task_as_the_class() -> None:
    letters = Letters()
    with_context = rules(**ALL_WITH_LETTERS, deadletterqueue_context_headers_enable="true")
    refused = row_failure(failure().raw, RowError(0, ErrorClass.SCHEMA, message="No."), Stage.TASK_PUT, "x.Sink")
    Tolerance(with_context, "c", 0, letters).give_up([refused])
    headers = {pair["name"]: pair["value"] for pair in letters.batches[0].headers[0].as_py()}
    assert headers["__connect.errors.class.name"] == b"org.apache.kafka.connect.sink.SinkTask"


def test_letters_are_flushed_once_and_only_when_there_are_any() -> None:
    letters = Letters()
    tolerance = Tolerance(rules(**ALL_WITH_LETTERS), "c", 0, letters)
    tolerance.flush(seconds)
    assert letters.flushed == 0
    tolerance.give_up([failure()])
    tolerance.flush(seconds)
    tolerance.flush(seconds)
    assert letters.flushed == 1


def test_a_letter_that_can_not_be_written_fails_the_flush() -> None:
    letters = Letters()
    tolerance = Tolerance(rules(**ALL_WITH_LETTERS), "c", 0, letters)
    tolerance.give_up([failure()])
    letters.refused = [FailedRow(None, 0, RowError(0, ErrorClass.SCHEMA, message="Too large."))]
    with pytest.raises(SchemaError, match="dead letter queue dead: Too large"):
        tolerance.flush(seconds)


def test_a_log_line_tells_the_place_only_if_asked_and_never_the_content(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        Tolerance(rules(tolerance="all", log_enable="true"), "c", 0, None).give_up([failure()])
        Tolerance(rules(tolerance="all", log_enable="true", log_include_messages="true"), "c", 0, None).give_up(
            [failure()]
        )
    short, long = (record.getMessage() for record in caplog.records)
    assert not any(content in long for content in ("b'b'", "old"))
    assert short.startswith("Error encountered in task c-0. Executing stage 'VALUE_CONVERTER'")
    assert "offset" not in short
    assert "topic t, partition 3, offset 41" in long


def test_nothing_is_logged_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    Tolerance(rules(tolerance="all"), "c", 0, None).give_up([failure()])
    assert not caplog.records


def test_a_source_passes_over_kafka_connects_key_and_has_one_of_its_own() -> None:
    assert ErrorRules.of({"errors.deadletterqueue.topic.name": "dead"}, sink=False).dead_letter_topic == ""
    own = {"wherry.errors.deadletterqueue.topic.name": "dead"}
    assert ErrorRules.of(own, sink=False).dead_letter_topic == "dead"
    assert ErrorRules.of(own, sink=True).dead_letter_topic == ""


def source_failure() -> StageFailure:
    values = pa.array([{"a": 1, "b": None}, {"a": 2, "b": "x"}])
    batch = of_value(values, constants=Constants("t"), key=pa.array(["k1", "k2"]))
    return StageFailure(batch, 1, Stage.VALUE_CONVERTER, "x.Avro", DataError("It does not fit."))


def source_letters(failed: StageFailure) -> Batch:
    letters = Letters()
    queue = "wherry.errors.deadletterqueue."
    config = {"errors.tolerance": "all", f"{queue}topic.name": "dead", f"{queue}context.headers.enable": "true"}
    Tolerance(ErrorRules.of(config, sink=False), "c", 0, letters).give_up([failed])
    return letters.batches[0]


def test_a_sources_letter_is_json_and_says_so() -> None:
    letter = source_letters(source_failure())
    assert letter.value.to_pylist() == [b'{"a":2,"b":"x"}']
    assert letter.key is not None
    assert letter.key.to_pylist() == [b'"k2"']
    headers = {pair["name"]: pair["value"] for pair in letter.headers[0].as_py()}
    assert headers["__wherry.errors.encoding"] == b"json"
    assert headers["__connect.errors.topic"] == b"t"
    assert headers["__connect.errors.offset"] is None


def test_a_row_that_a_source_could_not_read_leaves_the_bytes_it_told() -> None:
    error = RowError(5, ErrorClass.SCHEMA, "BAD_LINE", message="No number.", raw=b"1,x")
    batch = of_value(pa.array([b"1"], pa.binary()), constants=Constants("t"))
    letter = source_letters(unread_failure(batch, error, "x.Source"))
    assert letter.value.to_pylist() == [b"1,x"]
    assert "__wherry.errors.encoding" not in [pair["name"] for pair in letter.headers[0].as_py()]


def test_a_row_without_bytes_is_skipped_without_a_letter() -> None:
    letters = Letters()
    config = {"errors.tolerance": "all", "wherry.errors.deadletterqueue.topic.name": "dead"}
    failed = unread_failure(of_value(pa.array([], pa.binary())), RowError(5, ErrorClass.SCHEMA), "x.Source")
    told = Tolerance(ErrorRules.of(config, sink=False), "c", 0, letters).give_up([failed])
    assert (told, letters.batches) == (GivenUp(1, 0, failed=1), [])


def test_too_many_failures_end_the_tolerance_with_the_row_kept() -> None:
    letters = Letters()
    config = {
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead",
        "wherry.errors.stop.failures": "2", "wherry.errors.stop.records": "10",
    }  # fmt: skip
    tolerance = Tolerance(ErrorRules.of(config, sink=True), "c", 0, letters)
    tolerance.saw(3)
    tolerance.give_up([failure(0)])
    tolerance.saw(100)
    tolerance.saw(3)
    tolerance.give_up([failure(2)])
    tolerance.saw(100)
    tolerance.saw(3)
    told = tolerance.give_up([failure(0), failure(1), failure(2)])
    assert isinstance(told.error, ToleranceExceededError)
    assert "2 of the last 10 records have failed, which is where wherry" in str(told.error)
    assert (told.failed, told.skipped) == (2, 1)
    assert (len(letters.batches), letters.flushed) == (4, 1)


def test_tolerance_is_spelt_in_lower_case() -> None:
    with pytest.raises(ConfigError, match="must be one of: none, all"):
        rules(tolerance="ALL")


def test_the_class_of_a_refused_row_is_kept_when_the_task_fails() -> None:
    refused = row_failure(None, RowError(0, ErrorClass.AUTH, "DENIED", message="No."), Stage.TASK_PUT, "x")
    told = Tolerance(rules(), "c", 0, None).give_up([refused])
    assert "a record: No" in str(told.error)
    assert getattr(told.error, "error_class", None) is ErrorClass.AUTH
