"""Output of sidecars: lines, floods, and watchers that are slow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wherry.worker.host.logs import LINE_BYTES_MAX, EventHub, LogStream, SidecarEvent, Subscription


def line_event(text: str) -> SidecarEvent:
    return SidecarEvent(connector="c", instance_id="i", pid=1, line=text)


def test_output_is_cut_into_lines() -> None:
    log = LogStream()
    assert log.feed(b"one\ntw", 1.0) == ["one"]
    assert log.feed(b"o\r\n\nthree\n", 1.1) == ["two", "three"]


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="\n\r"), min_size=1, max_size=30), max_size=30),
    st.data(),
)
def test_lines_come_out_as_they_went_in_however_they_are_split(lines: list[str], data: st.DataObject) -> None:
    output = "".join(f"{line}\n" for line in lines).encode()
    log, passed, start = LogStream(), [], 0
    while start < len(output):
        end = data.draw(st.integers(start + 1, len(output)))
        passed += log.feed(output[start:end], 1.0)
        start = end
    assert passed == lines


def test_an_unfinished_line_is_passed_on_after_a_while() -> None:
    log = LogStream()
    assert log.feed(b"Password: ", 1.0) == []
    assert log.tick(1.2) == []
    assert log.tick(1.6) == ["Password: "]


def test_an_unfinished_line_is_passed_on_at_the_end() -> None:
    log = LogStream()
    log.feed(b"panic", 1.0)
    assert log.close() == ["panic"]


def test_a_line_without_end_takes_bounded_memory() -> None:
    log = LogStream()
    for _ in range(100):
        log.feed(b"x" * 4096, 1.0)
    assert [len(line) for line in log.close()] == [LINE_BYTES_MAX]


def test_a_flood_is_dropped_and_counted() -> None:
    log = LogStream(lines_per_s=10, lines_burst=5)
    assert len(log.feed(b"drop\n" * 100, 1.0)) == 5
    assert log.feed(b"drop\n" * 7, 1.0) == []
    told, line = log.feed(b"after\n", 2.0)
    assert "102 lines were dropped" in told
    assert line == "after"


def test_what_is_printed_slowly_is_never_dropped() -> None:
    log = LogStream(lines_per_s=10, lines_burst=5)
    passed = [line for second in range(100) for line in log.feed(b"drop\n", 1.0 + second / 5)]
    assert passed == ["drop"] * 100


def test_the_tail_has_the_last_lines_even_of_a_flood() -> None:
    log = LogStream(lines_per_s=1, lines_burst=1)
    log.feed(b"".join(b"line %d\n" % number for number in range(1000)), 1.0)
    assert log.tail(2) == ["line 998", "line 999"]


def test_bytes_that_are_not_text_do_no_harm() -> None:
    assert LogStream().feed(b"\xff\xfe\n", 1.0) == ["\ufffd\ufffd"]


def test_a_slow_watcher_loses_lines_and_is_told_how_many() -> None:
    watcher = Subscription(events_max=2)
    for number in range(5):
        watcher.put(line_event(str(number)))
    events = watcher.take(0)
    assert [event.line for event in events[:2]] == ["0", "1"]
    assert "3 log lines" in str(events[2].line)


def test_an_exit_is_never_lost() -> None:
    watcher = Subscription(events_max=2)
    watcher.put(line_event("0"))
    watcher.put(line_event("1"))
    watcher.put(SidecarEvent(connector="c", instance_id="i", pid=1, code=9))
    assert [event.code for event in watcher.take(0)][:2] == [None, 9]


def test_every_watcher_gets_every_event() -> None:
    hub = EventHub()
    watchers = [hub.subscribe(), hub.subscribe()]
    hub.publish(line_event("hello"))
    assert [[event.line for event in watcher.take(0)] for watcher in watchers] == [["hello"], ["hello"]]


def test_a_watcher_that_left_gets_nothing_more() -> None:
    hub = EventHub()
    watcher = hub.subscribe()
    hub.unsubscribe(watcher)
    hub.publish(line_event("hello"))
    assert watcher.closed
