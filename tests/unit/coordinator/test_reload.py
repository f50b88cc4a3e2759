"""A changed secret restarts the connectors that use it, when its time is over."""

from __future__ import annotations

import threading

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.providers import Provider, Providers
from wherry.coordinator.reload import Reloader, Reloads

USES = {"password": "${vault:pw}"}
ALL = {"uses": USES, "plain": {"a": "b"}, "keeps": {**USES, "config.action.reload": "NONE"}}


class Vault:
    def __init__(self) -> None:
        self.values: dict[str, str] = {"pw": "one", "other": "x"}
        self.providers = Providers({"vault": Provider(self.read, ttl_ms=1000)})

    def read(self, path: str, key: str) -> str | None:
        if key not in self.values:
            raise ConfigError("the vault is shut")
        return self.values[key]


def test_a_connector_is_restarted_when_its_secret_has_changed_and_not_before() -> None:
    vault = Vault()
    reloads = Reloads(vault.providers)
    assert reloads.due(0, ALL) == []
    vault.values["pw"] = "two"
    assert reloads.due(999, ALL) == []
    assert reloads.due(1000, ALL) == ["uses"]
    assert reloads.due(2000, ALL) == []


def test_a_secret_that_stays_the_same_restarts_nothing() -> None:
    vault = Vault()
    reloads = Reloads(vault.providers)
    assert [reloads.due(now, ALL) for now in (0, 1000, 2000)] == [[], [], []]


def test_a_connector_configured_anew_has_restarted_by_itself() -> None:
    vault = Vault()
    reloads = Reloads(vault.providers)
    reloads.due(0, {"c": USES})
    assert reloads.due(1000, {"c": {"password": "${vault:other}"}}) == []
    vault.values["other"] = "y"
    assert reloads.due(2000, {"c": {"password": "${vault:other}"}}) == ["c"]


def test_a_secret_that_cannot_be_read_leaves_the_connector_running_and_is_tried_again() -> None:
    vault = Vault()
    reloads = Reloads(vault.providers)
    reloads.due(0, {"c": USES})
    del vault.values["pw"]
    assert reloads.due(1000, {"c": USES}) == []
    vault.values["pw"] = "two"
    assert reloads.due(1001, {"c": USES}) == ["c"]


def test_a_connector_that_was_away_is_looked_at_anew() -> None:
    vault = Vault()
    reloads = Reloads(vault.providers)
    reloads.due(0, {"c": USES})
    reloads.due(1, {})
    vault.values["pw"] = "two"
    assert reloads.due(1000, {"c": USES}) == []


def test_the_thread_restarts_by_name() -> None:
    vault = Vault()
    providers = Providers({"vault": Provider(vault.read, ttl_ms=10)})
    restarted: list[str] = []
    done = threading.Event()

    def configs() -> dict[str, dict[str, str]]:
        vault.values["pw"] += "+"
        return {"c": USES}

    def restart(name: str) -> None:
        restarted.append(name)
        done.set()

    reloader = Reloader(providers, configs, restart)
    reloader.start()
    assert done.wait(60)
    reloader.stop()
    assert set(restarted) == {"c"}


def test_without_a_time_to_live_there_is_no_thread() -> None:
    reloader = Reloader(Providers(), dict, lambda name: None)
    reloader.start()
    assert not reloader._thread.is_alive()
    reloader.stop()
