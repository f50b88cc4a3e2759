"""What becomes of a dead letter."""

from __future__ import annotations

import pytest

from wherry.coordinator.dlq.letters import ENCODING, PREFIX, Header, Left, Letter, Resend, Rules, context, decide

OWN: tuple[Header, ...] = (("h", b"1"), ("h", None))


def told(**values: str | None) -> tuple[Header, ...]:
    """A set of context headers, in Kafka Connect's order."""
    names = {"topic": "t", "partition": "3", "offset": "7", "connector.name": "c", "stage": "VALUE_CONVERTER"}
    names |= {key.replace("_", "."): value for key, value in values.items()}  # type: ignore[dict-item]
    return tuple((PREFIX + name, None if value is None else value.encode()) for name, value in names.items())


def letter(*headers: Header) -> Letter:
    return Letter(0, 11, b"k", b"v", headers, 1234)


def test_a_record_goes_back_to_its_topic_and_partition_as_it_was() -> None:
    assert decide(letter(*OWN, *told()), Rules()) == Resend("t", 3, b"k", b"v", OWN, 1234)


def test_only_the_last_set_of_context_headers_counts_and_is_taken_away() -> None:
    earlier = told(topic="older", partition="0")
    assert decide(letter(*OWN, *earlier, *told()), Rules()) == Resend("t", 3, b"k", b"v", (*OWN, *earlier), 1234)


def test_a_header_of_the_record_that_looks_like_one_of_ours_is_kept() -> None:
    own = ((PREFIX + "topic", b"old"),)
    found, kept = context((*own, *told()))
    assert (found["topic"], kept) == ("t", own)


def test_another_topic_is_sent_to_by_key() -> None:
    assert decide(letter(*told()), Rules(to="retry")) == Resend("retry", None, b"k", b"v", (), 1234)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (Rules(connector="c"), True),
        (Rules(connector="other"), False),
        (Rules(stage="VALUE_CONVERTER"), True),
        (Rules(connector="c", stage="TASK_PUT"), False),
    ],
)
def test_filters_leave_out_the_letters_of_others(rules: Rules, wanted: bool) -> None:
    what = decide(letter(*told()), rules)
    assert isinstance(what, Resend) == wanted
    if isinstance(what, Left):
        assert not what.wanted


def test_a_letter_without_context_needs_a_topic() -> None:
    assert decide(letter(*OWN), Rules()) == Left("it does not tell the topic it came from; --to names one", wanted=True)
    assert decide(letter(*OWN), Rules(to="retry")) == Resend("retry", None, b"k", b"v", OWN, 1234)


def test_the_json_of_a_source_is_not_sent_where_converted_bytes_belong() -> None:
    headers = (*OWN, *told(partition=None, offset=None), (ENCODING, b"json"))
    what = decide(letter(*headers), Rules())
    assert isinstance(what, Left)
    assert what.wanted
    assert decide(letter(*headers), Rules(to="retry")) == Resend("retry", None, b"k", b"v", OWN, 1234)


def test_a_record_that_never_had_a_partition_is_sent_by_key() -> None:
    what = decide(letter(*told(partition=None)), Rules())
    assert isinstance(what, Resend)
    assert what.partition is None
