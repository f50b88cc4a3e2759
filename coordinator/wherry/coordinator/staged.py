"""What two-phase sinks have staged: kept before it is applied, and applied again after a crash.

A two-phase sink makes rows durable without showing them, and gives a token for it. The token and its positions are
written to the offset store first, then the sidecar applies it (`Commit`, harmless when repeated), then the positions
are committed, then the entry is forgotten. Whoever dies in between leaves the entry, and the next lease of the
connector begins only after it was applied: rows are seen exactly once, because the positions that the lease starts from
are those of what was applied.

Entries live beside the positions of sources, under the name of the connector and a partition that names the lease; of
a direct pipeline beside its own positions, which are told without them. A connector that is deleted keeps them as it
keeps its offsets; an operator who alters its offsets drops them.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wherry.contract.errors import ConfigError, WherryError
from wherry.contract.position import Position, compact_json
from wherry.coordinator.effects import CommitReport
from wherry.coordinator.events import ConnectorSpec
from wherry.coordinator.store import OffsetStore

log = logging.getLogger(__name__)

_KEY: Final = "wherry.staged"
# What the contract allows for one token; a lease reports one or a few between two commits.
TOKENS_BYTES_MAX: Final = 1024 * 1024

Apply = Callable[[ConnectorSpec, int, Sequence[bytes], Sequence[Position]], None]


@dataclass(frozen=True, slots=True)
class Staged:
    """Tokens that were kept and perhaps applied.

    Attributes:
        lease: Lease that staged.
        generation: Generation of that lease.
        tokens: In the order of their flushes.
        positions: What they cover.
    """

    lease: str
    generation: int
    tokens: tuple[bytes, ...]
    positions: tuple[Position, ...]

    @property
    def partition(self) -> str:
        """Under what the entry is kept."""
        return compact_json({_KEY: self.lease})

    def position(self) -> Position:
        """The entry as it is kept."""
        tokens = [base64.b64encode(token).decode() for token in self.tokens]
        positions = [[position.partition, position.offset] for position in self.positions]
        kept = {"generation": self.generation, "tokens": tokens, "positions": positions}
        return Position(self.partition, compact_json(kept))

    @classmethod
    def of(cls, position: Position) -> Staged | None:
        """Reads an entry back; None when the position is none.

        Raises:
            ConfigError: The entry is damaged.
        """
        if not is_entry(position) or position.offset is None:
            return None
        partition = json.loads(position.partition)
        try:
            kept = json.loads(position.offset)
            return cls(
                lease=str(partition[_KEY]),
                generation=int(kept["generation"]),
                tokens=tuple(base64.b64decode(token, validate=True) for token in kept["tokens"]),
                positions=tuple(Position(name, offset) for name, offset in kept["positions"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"What lease {partition[_KEY]} has staged can't be read back from the offsets ({error}): settle it at "
                "the destination by hand, then alter the connector's offsets, which drops the entry."
            ) from None


def is_entry(position: Position) -> bool:
    """Whether what lies among a connector's positions is such an entry, and no position."""
    if _KEY not in position.partition:
        return False
    partition = json.loads(position.partition)
    return isinstance(partition, dict) and set(partition) == {_KEY}


class StagedCommits:
    """Applies what two-phase sinks have staged. Calls for one connector come one after another.

    Args:
        offsets: Keeps the entries.
        apply: Has a sidecar of a generation apply tokens: spec, generation, tokens, positions.
        commit: Commits positions.
    """

    def __init__(
        self, offsets: OffsetStore, apply: Apply, commit: Callable[[ConnectorSpec, Sequence[Position]], None]
    ) -> None:
        self._offsets = offsets
        self._apply = apply
        self._commit = commit

    def commit(self, effect: CommitReport) -> None:
        """Keeps, applies and commits what a report brings.

        Raises:
            WherryError: It is not applied, or not committed; the entry stays if it was kept.
        """
        staged = Staged(effect.lease, effect.generation, effect.tokens, effect.positions)
        size = sum(map(len, staged.tokens))
        if size > TOKENS_BYTES_MAX:
            raise ConfigError(
                f"The tokens of {effect.connector} since its last commit have {size} bytes; {TOKENS_BYTES_MAX} is the "
                "most that can be kept. Flush more often, or keep what is staged at the destination."
            )
        self._offsets.write(effect.connector, [staged.position()])
        self._settle(effect.spec, staged, effect.generation)

    def recover(self, spec: ConnectorSpec, generation: int) -> int:
        """Applies and commits what was left; returns how many leases had left something.

        Raises:
            WherryError: It can't be read, applied or committed; no lease may begin before it is.
        """
        left = [staged for position in self._offsets.load(spec.name) if (staged := Staged.of(position)) is not None]
        for staged in left:
            log.warning(
                "Lease %s had staged rows that may not have been applied: %d token(s) are applied now.",
                staged.lease, len(staged.tokens),
            )  # fmt: skip
            try:
                self._settle(spec, staged, generation)
            except WherryError as error:
                log.warning("What lease %s had staged could not be applied: %s", staged.lease, error)
                raise
        return len(left)

    def _settle(self, spec: ConnectorSpec, staged: Staged, generation: int) -> None:
        self._apply(spec, generation, staged.tokens, staged.positions)
        # Invariant 1: what these positions stand after was applied just now.
        self._commit(spec, staged.positions)
        self._offsets.write(spec.name, [Position(staged.partition, None)])
