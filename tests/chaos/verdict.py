"""What became of the records: pure, so that the judge itself can be tested.

Every record carries its number, counted from 0 in each partition of its flow. The numbers, in the order in which they
arrived, tell everything: what is missing, what came twice, and whether what came twice had been committed before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with one partition. All zero and empty is what one hopes for, but for `duplicates`.

    Attributes:
        lost: Records that never came.
        duplicates: Arrivals of a record that had come before.
        committed_again: Those of them whose position had been committed before the fault.
        disordered: Arrivals of a record whose predecessor had not come yet.
        examples: Some numbers that are wrong.
        repeats: How often the sequence stepped back.
    """

    lost: int = 0
    duplicates: int = 0
    committed_again: int = 0
    disordered: int = 0
    repeats: int = 0
    examples: tuple[int, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong; duplicates of what was not committed are not."""
        return not (self.lost or self.committed_again or self.disordered)


def judge(arrived: Iterable[int], total: int, committed: int = 0) -> Verdict:
    """Judge one partition.

    Args:
        arrived: Record numbers in the order of their arrival.
        total: How many records there were.
        committed: The position committed before the fault: records below it may not come again.
    """
    seen = bytearray(total)
    highest = -1
    duplicates = committed_again = disordered = repeats = 0
    previous = -1
    examples: list[int] = []
    for number in arrived:
        wrong = False
        if number > highest + 1:
            disordered, wrong = disordered + 1, True
        if seen[number]:
            duplicates += 1
            if number < committed:
                committed_again, wrong = committed_again + 1, True
        if number <= previous:
            repeats += 1
        if wrong and len(examples) < EXAMPLES_MAX:
            examples.append(number)
        seen[number] = 1
        highest, previous = max(highest, number), number
    lost = total - sum(seen)
    missing = [number for number in range(total) if not seen[number]][:EXAMPLES_MAX] if lost else []
    return Verdict(lost, duplicates, committed_again, disordered, repeats, (*missing, *examples)[:EXAMPLES_MAX])


def recovery_s(progress: Iterable[tuple[float, int]], fault_at: float, until: float) -> float:
    """Return how long after a fault the longest standstill ended, that began before or soon after it.

    What was under way when the fault came may still arrive, so the first growth after it proves nothing: the longest
    standstill does.

    Args:
        progress: Times and counts at the destination, in order.
        fault_at: When the fault came.
        until: Standstills that begin later have other reasons.
    """
    growths = [fault_at]
    previous: int | None = None
    for at, count in progress:
        if at <= fault_at:
            previous = count
        elif previous is None or count > previous:
            growths.append(at)
            previous = count
            if growths[-2] > until:
                break
    standstills = [(after - before, after) for before, after in itertools.pairwise(growths) if before <= until]
    return max(standstills)[1] - fault_at if standstills else 0.0


def summary(verdicts: Mapping[int, Verdict]) -> str:
    """Return a line about the partitions of a flow."""
    duplicates = sum(verdict.duplicates for verdict in verdicts.values())
    repeats = sum(verdict.repeats for verdict in verdicts.values())
    lost = sum(verdict.lost for verdict in verdicts.values())
    return f"lost {lost}, duplicates {duplicates} in {repeats} steps back"
