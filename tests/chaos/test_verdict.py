"""The judge has to find what is wrong before it may call anything right."""

from __future__ import annotations

from tests.chaos.verdict import Verdict, judge, recovery_s


def test_a_complete_sequence_is_sound() -> None:
    assert judge(range(10), 10) == Verdict()


def test_a_missing_record_is_lost() -> None:
    verdict = judge([0, 1, 3], 4)
    assert (verdict.lost, verdict.disordered, verdict.examples) == (1, 1, (2, 3))
    assert not verdict.sound


def test_a_missing_end_is_lost() -> None:
    assert judge([0, 1], 4).lost == 2


def test_records_read_again_after_the_commit_are_sound() -> None:
    verdict = judge([0, 1, 2, 3, 2, 3, 4], 5, committed=2)
    assert verdict.sound
    assert (verdict.duplicates, verdict.repeats) == (2, 1)


def test_a_committed_record_that_comes_again_is_found() -> None:
    verdict = judge([0, 1, 2, 3, 1, 2, 3], 4, committed=2)
    assert (verdict.committed_again, verdict.examples) == (1, (1,))
    assert not verdict.sound


def test_a_record_before_its_predecessor_is_disordered() -> None:
    verdict = judge([0, 2, 1], 3)
    assert (verdict.disordered, verdict.lost) == (1, 0)
    assert not verdict.sound


def test_recovery_is_the_end_of_the_longest_standstill_after_the_fault() -> None:
    progress = [(0.0, 1), (1.0, 2), (1.2, 3), (1.3, 4), (2.5, 5), (2.6, 6), (9.0, 7)]
    assert recovery_s(progress, fault_at=1.1, until=2.0) == 2.5 - 1.1


def test_a_later_standstill_is_none_of_the_faults_doing() -> None:
    progress = [(1.0, 1), (1.2, 2), (1.3, 3), (1.4, 4), (60.0, 5)]
    assert recovery_s(progress, fault_at=1.1, until=1.35) < 0.3
