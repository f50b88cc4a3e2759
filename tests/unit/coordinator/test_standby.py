"""Which plugins a standby keeps at hand, and when it touches them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wherry.contract.errors import TransientError
from wherry.coordinator import standby
from wherry.coordinator.api import TargetState
from wherry.coordinator.standby import Standby, wanted
from wherry.coordinator.store import ConfigSnapshot, StoredConnector

PLUGINS: dict[str, Any] = {
    name: SimpleNamespace(name=name, digest=f"d-{name}", forkable=name == "python") for name in ("python", "go", "sink")
}


class Desk:
    """A standby with what it is told."""

    def __init__(self, *connectors: StoredConnector) -> None:
        self.connectors = {connector.name: connector for connector in connectors}
        self.leads, self.fails = False, False
        self.warmed: list[str] = []
        self.standby = Standby(self, PLUGINS.get, self.snapshot, lambda: self.leads)

    def snapshot(self) -> ConfigSnapshot:
        return ConfigSnapshot(1, self.connectors)

    def warm(self, manifest: Any) -> None:
        self.warmed.append(manifest.name)
        if self.fails:
            raise TransientError("it does not start")

    def touched(self) -> list[str]:
        self.warmed.clear()
        self.standby.touch()
        return list(self.warmed)


def stored(name: str, target: TargetState = TargetState.STARTED, **config: str) -> StoredConnector:
    return StoredConnector(name, {key.replace("_", "."): value for key, value in config.items()}, target)


def test_each_plugin_in_use_is_started_once_and_touched_again_where_that_keeps_it_warm():
    desk = Desk(
        stored("a", connector_class="python"), stored("b", connector_class="python"), stored("c", connector_class="go")
    )
    assert [desk.touched() for _ in range(3)] == [["python", "go"], ["python"], ["python"]]


def test_what_rests_or_is_unknown_needs_no_plugin_and_a_direct_pipeline_needs_two():
    rests = [stored(state.name, state, connector_class="go") for state in TargetState if state.name != "STARTED"]
    desk = Desk(*rests, stored("gone", connector_class="nothing"))
    assert desk.touched() == []
    direct = StoredConnector("d", {"connector.class": "python", standby.SINK_CLASS: "sink"}, TargetState.STARTED)
    assert list(wanted(ConfigSnapshot(1, {"d": direct}), PLUGINS.get)) == ["d-python", "d-sink"]


def test_a_leader_touches_nothing_and_begins_anew_when_it_leads_no_more():
    desk = Desk(stored("c", connector_class="go"))
    desk.leads = True
    assert desk.touched() == []
    desk.leads = False
    assert [desk.touched(), desk.touched()] == [["go"], []]


def test_a_plugin_that_does_not_start_holds_up_no_other(caplog: pytest.LogCaptureFixture):
    desk = Desk(stored("a", connector_class="python"), stored("c", connector_class="go"))
    desk.fails = True
    with caplog.at_level("INFO"):
        assert desk.touched() == ["python", "go"]
    assert "python cannot be kept at hand: it does not start" in caplog.text


def test_no_more_plugins_are_kept_than_a_standby_has_room_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standby, "PLUGINS_MAX", 1)
    assert Desk(stored("a", connector_class="python"), stored("c", connector_class="go")).touched() == ["python"]
