"""What a new leader puts in order: states of what is gone or rests, and the session key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wherry.coordinator.api import State, TargetState
from wherry.coordinator.cluster import renew_key, tidy
from wherry.coordinator.store import ConfigSnapshot, StoredConnector, StoredStatus
from wherry.coordinator.store.configlog import SessionKey

HOUR_MS = 3_600_000


class Kept:
    """Stores that remember what they were told."""

    def __init__(self, *connectors: StoredConnector, key: SessionKey | None = None) -> None:
        self.key = key
        self.surplus: dict[str, int] = {}
        self.put: list[StoredStatus] = []
        snapshot = ConfigSnapshot(1, {connector.name: connector for connector in connectors})
        self.configs = SimpleNamespace(
            snapshot=lambda: snapshot, session_key=lambda: self.key, put_session_key=self._put_key
        )
        self.statuses = SimpleNamespace(forget_surplus=self.surplus.update, put=self.put.append)

    def _put_key(self, key: SessionKey) -> None:
        self.key = key


def ordered(*connectors: StoredConnector, key: SessionKey | None = None) -> Kept:
    kept: Any = Kept(*connectors, key=key)
    tidy(kept, "w:1", 5 * HOUR_MS, HOUR_MS)
    return kept  # type: ignore[no-any-return]


def test_the_tasks_of_a_paused_connector_are_told_to_be_paused_for_nobody_else_does():
    kept = ordered(
        StoredConnector("p", {}, TargetState.PAUSED, ({}, {})),
        StoredConnector("r", {}, TargetState.STARTED, ({},)),
        StoredConnector("s", {}, TargetState.STOPPED),
    )
    assert kept.put == [StoredStatus("p", number, State.PAUSED, "w:1") for number in (0, 1)]
    assert kept.surplus == {"p": 2, "r": 1, "s": 0}


@pytest.mark.parametrize(("age_ms", "renewed"), [(0, False), (HOUR_MS - 1, False), (HOUR_MS, True)])
def test_a_key_is_renewed_when_its_time_is_over(age_ms, renewed):
    old = SessionKey(b"k" * 32, "HmacSHA256", 5 * HOUR_MS - age_ms)
    kept = ordered(key=old)
    assert (kept.key != old) is renewed


def test_without_a_key_one_is_made_and_no_two_are_alike():
    keys = set()
    for _ in range(3):
        kept: Any = Kept()
        renew_key(kept, 7, HOUR_MS)
        assert (len(kept.key.key), kept.key.algorithm, kept.key.created_ms) == (32, "HmacSHA256", 7)
        keys.add(kept.key.key)
    assert len(keys) == 3
