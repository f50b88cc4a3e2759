"""When a sidecar may be started again, and when it is no longer needed."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConnectorBugError
from wherry.worker.host.entry import (
    CRASH_PAUSES_S,
    CRASH_WINDOW_S,
    LINGER_S,
    PLUGIN_AGE_MAX_S,
    Crashes,
    Entry,
    Key,
    State,
)

CONNECTOR = Key("lines", 1, "Class", "/plugins/filestream")
PLUGIN = Key("", 0, "", "/plugins/filestream")


def test_a_first_crash_is_made_good_at_once() -> None:
    crashes = Crashes()
    crashes.note("ended with code 1", 100.0)
    assert crashes.pause_s("lines", 100.0) <= 0


def test_further_crashes_wait_longer_and_longer() -> None:
    crashes, pauses = Crashes(), []
    for _ in CRASH_PAUSES_S[1:]:
        crashes.note("ended with code 1", 100.0)
        pauses.append(crashes.pause_s("lines", 100.0))
    assert pauses == sorted(pauses)
    assert pauses[-1] > 1


def test_a_crash_loop_is_given_up_with_a_sentence() -> None:
    crashes = Crashes()
    for _ in CRASH_PAUSES_S:
        crashes.note("ended with code 3", 100.0)
    with pytest.raises(ConnectorBugError, match=r"sidecar of lines failed 6 times within 60 s .* ended with code 3"):
        crashes.pause_s("lines", 101.0)


def test_a_crash_loop_is_forgiven_after_the_window() -> None:
    crashes = Crashes()
    for _ in CRASH_PAUSES_S:
        crashes.note("ended with code 3", 100.0)
    assert crashes.pause_s("lines", 100.0 + CRASH_WINDOW_S + 1) <= 0


def test_a_sidecar_in_use_is_kept() -> None:
    entry = Entry(CONNECTOR, state=State.READY, holders={"lease": lambda: None})
    assert not entry.is_over(1e6)


def test_a_free_sidecar_is_kept_for_a_moment_only() -> None:
    entry = Entry(CONNECTOR, state=State.READY, free_since_s=100.0)
    assert not entry.is_over(100.0 + LINGER_S / 2)
    assert entry.is_over(100.0 + LINGER_S)


def test_a_sidecar_that_is_starting_is_not_stopped_for_want_of_users() -> None:
    assert not Entry(CONNECTOR, state=State.STARTING).is_over(1e6)


def test_crashes_are_remembered_after_the_last_user_has_gone() -> None:
    entry = Entry(CONNECTOR, state=State.DOWN, free_since_s=100.0)
    entry.crashes.note("ended with code 1", 100.0)
    assert not entry.is_over(100.0 + LINGER_S)
    assert entry.is_over(100.0 + CRASH_WINDOW_S + 1)


def test_a_forgotten_plugin_is_stopped_in_the_end() -> None:
    entry = Entry(PLUGIN, state=State.READY, holders={"describe": lambda: None}, born_s=100.0)
    assert not entry.is_over(100.0 + PLUGIN_AGE_MAX_S - 1)
    assert entry.is_over(100.0 + PLUGIN_AGE_MAX_S + 1)
