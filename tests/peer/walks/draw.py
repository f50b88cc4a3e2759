"""Walks by their seed: the same numbers give the same steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.peer.steps import Append
from tests.peer.walks.configs import SINK, SOURCE, Place
from tests.peer.walks.moves import DRAWINGS, Move, altered, created, forgotten, more, resumed, stopped

STEPS_MIN, STEPS_MAX = 8, 15
PHRASES = 0.1
"""How often several steps are drawn that make sense together only."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What is done, one after another.

    Attributes:
        number: Which one of its seed.
        places: The connectors it is about.
        begin: What is there before: lines and records.
        moves: The steps.
    """

    number: int
    places: tuple[Place, ...]
    begin: tuple[Move, ...]
    moves: tuple[Move, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics that are made before."""
        return tuple(dict.fromkeys(place.topic for place in self.places))


def walks(seed: int, count: int, *, steps: int | None = None, first: int = 0, tag: str = "") -> Iterator[Walk]:
    """Draw walks, each from its own number alone, so that any can be played by itself.

    Args:
        seed: What all are drawn from.
        count: How many.
        steps: How many steps each has; None draws that, too.
        first: Number of the first.
        tag: Part of all names, for one that is played again: what is deleted leaves positions behind.
    """
    for number in range(first, first + count):
        yield _walk(Random(f"{seed}/{number}"), number, steps, tag)


def _walk(random: Random, number: int, steps: int | None, tag: str) -> Walk:
    kinds = random.choice(((SOURCE,), (SINK,), (SOURCE, SINK), (SINK, SINK)))
    places = tuple(
        Place(
            f"w{number}{tag}-{index}-{{x}}",
            kind,
            f"w{number}{tag}-lines-{index}-{{x}}",
            f"w{number}{tag}-{index}.{kind}",
        )
        for index, kind in enumerate(kinds)
    )
    begin = tuple(more(random, place) for place in places for _ in range(2))
    moves: list[Move] = [created(random, place, plain=random.random() < 0.6) for place in places]
    drawings, weights = zip(*DRAWINGS.items(), strict=True)
    length = steps or random.randint(STEPS_MIN, STEPS_MAX)
    while len(moves) < length:
        place = random.choice(places)
        if random.random() < PHRASES:
            moves += _phrase(random, place)
        else:
            moves.append(random.choices(drawings, weights)[0](random, place))
    return Walk(number, places, begin, tuple(moves[:length]))


def _phrase(random: Random, place: Place) -> Iterator[Move]:
    yield stopped(random, place)
    yield altered(random, place)
    if random.random() < 0.5:
        yield random.choice((altered, forgotten))(random, place)
    yield resumed(random, place)


def told(move: Move) -> str:
    """A step's name."""
    return f"more lines in {move.file}" if isinstance(move, Append) else move.name
