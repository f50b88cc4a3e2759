"""The conformance kit finds what is wrong: the hostile sidecar is caught at whatever it was asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from wherry.conformance import Outcome, Result, Runner, Target
from wherry.conformance.case import Case, load_cases

pytestmark = pytest.mark.integration

HOSTILE = Path(__file__).resolve().parents[2] / "sidecars" / "hostile"
LEDGER = Path(__file__).resolve().parent / "plugins" / "ledger"
SOURCE = "wherry.hostile.HostileSource"
SINK = "wherry.hostile.HostileSink"
CASES: dict[str, Case] = {case.name: case for case in load_cases()}


@contextmanager
def runner(class_name: str, config: dict[str, str], argv: tuple[str, ...] = ()) -> Iterator[Runner]:
    target = Target.of_directory(HOSTILE)
    subjects = dict(target.subject.classes)
    if class_name:
        subjects[class_name] = replace(subjects[class_name], config={**subjects[class_name].config, **config})
    command = replace(target.command, argv=(*target.command.argv, *argv))
    one = Runner(replace(target, command=command, subject=replace(target.subject, classes=subjects)))
    try:
        yield one
    finally:
        one.close()


def judge(case: str, class_name: str, modes: str, argv: tuple[str, ...] = (), **config: str) -> Result:
    given = {key.replace("_", "."): value for key, value in config.items()}
    with runner(class_name, {"misbehave": modes, **given} if modes else given, argv) as one:
        return one.run_case(CASES[case], class_name)


@pytest.mark.parametrize(
    ("mode", "case", "sentence"),
    [
        ("no-opened", "l2-caught-up", "`opened` comes first and once"),
        ("seq-gap", "l2-marks-are-monotonic", "Frame 3 was due; there came frame 4"),
        ("marks-back", "l2-marks-are-monotonic", "marks rise and stay within the frame"),
        ("marks-beyond", "l2-marks-are-monotonic", "a mark at row"),
        ("no-marks", "l2-read-from-start", "have no position after them"),
        ("loose-json", "l2-marks-are-monotonic", "has to be a compact JSON object"),
        ("over-credit", "l2-read-credit-is-honoured", "came without credit"),
        ("over-credit", "l2-read-byte-credit-is-honoured", "came without credit"),
        ("unknown-schema", "l2-caught-up", "follows schema 99, which has not been sent"),
        ("garbage", "l2-caught-up", "isn't a sound Arrow record batch message"),
        ("row-count", "l2-caught-up", "says 121 rows and has 120"),
        ("repeat-rows", "l2-read-from-start", "240 rows came; the subject file promises 120"),
        ("row-errors", "l2-read-from-start", "108 rows came; the subject file promises 120"),
        ("ignore-drain", "l2-drain-ends", "Nothing more came from the source in time"),
        ("after-end", "l2-drain-ends", "After `end` came frame"),
        ("error-plan", "l2-plan", "Plan failed: UNAVAILABLE"),
        ("raise-read", "l2-caught-up", "The Read stream failed: INTERNAL"),
        ("kill-midway", "l2-read-from-start", "The Read stream failed: UNAVAILABLE"),
        ("exit-midway", "l2-read-from-start", "The Read stream failed: UNAVAILABLE"),
        ("end-midway", "l2-caught-up", "ended without `caught_up`"),
        ("error-configure", "l2-configure-fencing", "Configure failed: UNAVAILABLE"),
        ("hang-stop", "l2-stop-ends-streams", "PluginService.Stop did not answer within 6 s"),
        ("ignore-sigterm", "l2-sigterm-while-reading", "did not end within 5 s of SIGTERM"),
    ],
)
def test_a_source_is_caught(mode: str, case: str, sentence: str) -> None:
    result = judge(case, SOURCE, mode)
    assert (result.outcome, sentence in result.message) == (Outcome.FAILED, True), result


@pytest.mark.parametrize(
    ("mode", "big_bytes", "sentence"),
    [
        ("lost-chunk", "35000000", "Chunk 1 of 17 of frame 2 was due; there came chunk 2 of 17"),
        ("big-message", "20000000", "The Read stream failed: RESOURCE_EXHAUSTED"),
        ("big-row", "100000000", "more than 83886080 bytes in its chunks"),
    ],
)
def test_a_source_of_big_rows_is_caught(mode: str, big_bytes: str, sentence: str) -> None:
    result = judge("l2-caught-up", SOURCE, mode, big_bytes=big_bytes, count="1")
    assert (result.outcome, sentence in result.message) == (Outcome.FAILED, True), result


@pytest.mark.parametrize(
    ("mode", "case", "sentence"),
    [
        ("no-opened", "l3-write-ack-in-order", "`opened`"),
        ("no-credit", "l3-write-ack-in-order", "gives no credit"),
        ("ack-order", "l3-write-ack-in-order", "the ack of frame 3; frame 2 was due"),
        ("ack-twice", "l3-write-ack-in-order", "the ack of frame 2; "),
        ("ack-unknown", "l3-write-ack-in-order", "the ack of frame 1002; frame 2 was due"),
        ("no-ack", "l3-flush-accounts-for-rows", "`flushed` came before the ack of frame 2"),
        ("lost-rows", "l3-flush-accounts-for-rows", "30 rows were sent, but 29 written"),
        ("lied-rows", "l3-rows-arrive", "The destination"),
        ("far-positions", "l3-flush-positions", "`flushed` tells"),
        ("flush-id", "l3-flush-positions", "`flushed` answers the flush 8; it was 1"),
        ("error-beyond", "l3-write-ack-in-order", "an error of row 5; it has 5 rows"),
        ("ignore-close", "l3-write-ack-in-order", "The stream did not end within 10 s"),
        ("kill-midway", "l3-write-ack-in-order", "The Write stream ended with UNAVAILABLE"),
        ("raise-flush", "l3-flush-positions", "The Write stream ended with INTERNAL"),
        ("hang-stop", "l3-stop-in-time", "PluginService.Stop did not answer within 6 s"),
    ],
)
def test_a_sink_is_caught(mode: str, case: str, sentence: str) -> None:
    result = judge(case, SINK, mode)
    assert (result.outcome, sentence in result.message) == (Outcome.FAILED, True), result


@pytest.mark.parametrize(
    ("modes", "sentence"),
    [
        ("wrong-instance", "Hello tells the instance id 'another'"),
        ("wrong-revision", "Hello chose the revision 77"),
        ("never-healthy", "The health of the sidecar is NOT_SERVING"),
        ("no-health", "The sidecar did not come up: UNIMPLEMENTED"),
        ("exit-at-start", "ended with code 3 before it listened. Its last output:\nI was asked to end at the start."),
        ("raise-hello", "The sidecar did not come up: INTERNAL"),
    ],
)
def test_a_process_is_caught(modes: str, sentence: str) -> None:
    result = judge("l1-hello-instance", "", "", ("--misbehave", modes))
    assert (result.outcome, sentence in result.message) == (Outcome.FAILED, True), result


@pytest.mark.parametrize(
    ("modes", "case", "class_name"),
    [
        ("backoff", "l3-write-ack-in-order", SINK),
        ("bad-rows", "l3-write-ack-in-order", SINK),
        ("slow-ack", "l3-flush-positions", SINK),
        ("row-errors", "l2-marks-are-monotonic", SOURCE),
        ("flood-logs", "l2-read-from-start", SOURCE),
        ("flood-events", "l2-read-from-start", SOURCE),
    ],
)
def test_what_is_allowed_passes(modes: str, case: str, class_name: str) -> None:
    result = judge(case, class_name, modes, delay_ms="10")
    assert result.outcome is Outcome.PASSED, result


@pytest.mark.parametrize(("eager", "outcome"), [("false", Outcome.PASSED), ("true", Outcome.FAILED)])
def test_a_sink_that_stores_rows_before_their_mark_is_caught(eager: str, outcome: Outcome) -> None:
    target = Target.of_directory(LEDGER)
    [(name, subject)] = target.subject.classes.items()
    changed = replace(subject, config={**subject.config, "eager": eager})
    one = Runner(replace(target, subject=replace(target.subject, classes={name: changed})))
    try:
        result = one.run_case(CASES["l3-cut-batch"], name)
    finally:
        one.close()
    assert result.outcome is outcome, result
    if outcome is Outcome.FAILED:
        assert result.message.endswith("60 rows are at the destination; it should be 40."), result


def test_the_next_case_gets_a_sound_process() -> None:
    with runner(SOURCE, {"misbehave": "kill-midway", "after.rows": "5"}) as one:
        first = one.run_case(CASES["l2-read-from-start"], SOURCE)
        second = one.run_case(CASES["l1-describe"], "")
    assert [first.outcome, second.outcome] == [Outcome.FAILED, Outcome.PASSED]
