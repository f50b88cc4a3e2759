"""What a two-phase sink stages is applied once seen from outside, whoever dies in between."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wherry.contract.errors import ConfigError, TransientError, WherryError
from wherry.contract.position import Position
from wherry.coordinator import events as ev
from wherry.coordinator.effects import CommitReport
from wherry.coordinator.staged import TOKENS_BYTES_MAX, Staged, StagedCommits

SPEC = ev.ConnectorSpec("c", ev.Kind.SINK, {})
PLACE = Position('{"kafka_topic":"t","kafka_partition":0}', '{"kafka_offset":7}')


class Offsets:
    """Positions that survive the death of the coordinator."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.writes = 0

    def load(self, connector: str) -> list[Position]:
        return [Position(partition, offset) for partition, offset in self.kept.items()]

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        self.writes += 1
        for position in positions:
            if position.offset is None:
                self.kept.pop(position.partition, None)
            else:
                self.kept[position.partition] = position.offset

    def reset(self, connector: str) -> None:
        self.kept.clear()


class World:
    """A destination and a group, with a death at a chosen step."""

    def __init__(self, dies_at: str = "") -> None:
        self.offsets = Offsets()
        self.applied: list[bytes] = []
        self.committed: list[Position] = []
        self.calls: list[str] = []
        self.dies_at = dies_at
        self.staged = StagedCommits(self.offsets, self.apply, self.commit)

    def _step(self, name: str) -> None:
        self.calls.append(name)
        if self.dies_at == name:
            self.dies_at = ""
            raise TransientError("Killed.")

    def apply(
        self,
        spec: ev.ConnectorSpec,
        generation: int,
        tokens: Sequence[bytes],
        positions: Sequence[Position],
    ) -> None:
        assert self.offsets.kept, "the tokens were kept before"
        self._step("before apply")
        self.calls.append(f"apply by {generation}")
        self.applied += [token for token in tokens if token not in self.applied]  # as the contract asks: idempotent
        self._step("after apply")

    def commit(self, spec: ev.ConnectorSpec, positions: Sequence[Position]) -> None:
        self._step("before commit")
        self.committed += positions


def report(*tokens: bytes, lease: str = "c-0-3-1") -> CommitReport:
    return CommitReport("c", lease, 3, SPEC, 1, (PLACE,), tokens)


def test_a_token_is_kept_applied_committed_and_forgotten_in_this_order() -> None:
    world = World()
    world.staged.commit(report(b"\x00one", b"two"))
    assert world.calls == ["before apply", "apply by 3", "after apply", "before commit"]
    assert (world.applied, world.committed) == ([b"\x00one", b"two"], [PLACE])
    assert world.offsets.kept == {}
    assert world.staged.recover(SPEC, 4) == 0


@pytest.mark.parametrize("moment", ["before apply", "after apply", "before commit"])
def test_whenever_the_coordinator_dies_the_next_lease_finds_it_applied_and_committed(moment: str) -> None:
    world = World(dies_at=moment)
    with pytest.raises(TransientError):
        world.staged.commit(report(b"one", b"two"))
    assert world.committed == []
    another = StagedCommits(world.offsets, world.apply, world.commit)
    assert another.recover(SPEC, 5) == 1
    assert (world.applied, world.committed) == ([b"one", b"two"], [PLACE])
    assert "apply by 5" in world.calls
    assert another.recover(SPEC, 5) == 0


def test_what_several_leases_left_is_applied_and_positions_of_sources_are_left_alone() -> None:
    world = World()
    world.offsets.kept['{"file":"a"}'] = '{"position":1}'
    for number, lease in enumerate(["c-0-3-1", "c-1-3-2"]):
        world.dies_at = "before apply"
        with pytest.raises(TransientError):
            world.staged.commit(report(b"%d" % number, lease=lease))
    assert world.staged.recover(SPEC, 4) == 2
    assert world.applied == [b"0", b"1"]
    assert list(world.offsets.kept) == ['{"file":"a"}']


def test_a_recovery_that_fails_leaves_the_entry() -> None:
    world = World(dies_at="before apply")
    with pytest.raises(WherryError):
        world.staged.commit(report(b"one"))
    world.dies_at = "before apply"
    with pytest.raises(WherryError):
        world.staged.recover(SPEC, 4)
    assert world.staged.recover(SPEC, 4) == 1


def test_an_entry_survives_the_way_to_the_store_and_back() -> None:
    staged = Staged("my-c-0-3-1", 3, (b"", bytes(range(256))), (PLACE, Position('{"a":1}', None)))
    assert Staged.of(staged.position()) == staged


def test_a_damaged_entry_is_told_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="alter the connector's offsets, which drops the entry"):
        Staged.of(Position('{"wherry.staged":"c-0-3-1"}', '{"generation":3,"tokens":["?"],"positions":[]}'))


def test_tokens_that_are_too_many_are_refused_before_anything_is_kept() -> None:
    world = World()
    with pytest.raises(ConfigError, match=f"{TOKENS_BYTES_MAX + 1} bytes"):
        world.staged.commit(report(b"x" * (TOKENS_BYTES_MAX + 1)))
    assert (world.offsets.writes, world.calls) == (0, [])
