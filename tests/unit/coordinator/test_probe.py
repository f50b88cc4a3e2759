"""Plugins are asked in processes that are kept warm, and let go."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from wherry.contract import client as client_module
from wherry.contract.client import Validation
from wherry.contract.errors import TransientError
from wherry.contract.manifest import Manifest
from wherry.coordinator import probe
from wherry.coordinator.hosts import Acquired
from wherry.coordinator.probe import PluginProber


@dataclass
class FakeHost:
    acquired: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    freed: threading.Event = field(default_factory=threading.Event)

    def acquire_plugin(self, plugin, directory, holder, *, timeout_s=0.0):
        self.acquired.append(plugin)
        return Acquired(f"unix:///{plugin}", f"{plugin}-{len(self.acquired)}")

    def release(self, instance_id, holder):
        self.released.append(instance_id)
        self.freed.set()


class FakeClient:
    failing = False
    killed = 0

    def __init__(self, endpoint, *, ready):
        assert ready, "the host gives it only when it listens"
        self.endpoint = endpoint

    def describe(self, *, deadline_s):
        if FakeClient.failing:
            raise TransientError("it is gone")
        return [self.endpoint]

    def validate_config(self, class_name, config, secrets, *, deadline_s):
        if FakeClient.killed:
            FakeClient.killed -= 1
            raise TransientError("it can't be reached", reason="UNAVAILABLE")
        return Validation()

    def close(self):
        pass


@pytest.fixture
def host(monkeypatch):
    monkeypatch.setattr(probe, "SidecarClient", FakeClient)
    monkeypatch.setattr(client_module, "SidecarClient", FakeClient)
    monkeypatch.setattr(FakeClient, "failing", False)
    monkeypatch.setattr(FakeClient, "killed", 0)
    return FakeHost()


@pytest.fixture
def manifest(tmp_path):
    return Manifest("orders", "1", tmp_path, (), ("./run",), digest="d1")


def test_a_process_is_asked_more_than_once(host, manifest):
    prober = PluginProber(host)
    assert prober.describe(manifest) == ["unix:///orders"]
    assert prober.validate(manifest, "x", {}, {}) == Validation()
    assert host.acquired == ["orders"]
    prober.close()
    assert host.released == ["orders-1"]


def test_a_process_that_does_not_answer_is_let_go_and_started_anew(host, manifest):
    prober = PluginProber(host)
    FakeClient.failing = True
    with pytest.raises(TransientError):
        prober.describe(manifest)
    assert host.released == ["orders-1"]
    FakeClient.failing = False
    assert prober.describe(manifest)
    assert host.acquired == ["orders", "orders"]
    prober.close()


def test_a_process_that_was_killed_is_replaced_and_the_question_asked_again(host, manifest):
    prober = PluginProber(host)
    prober.describe(manifest)
    FakeClient.killed = 1
    assert prober.validate(manifest, "x", {}, {}) == Validation()
    assert (host.acquired, host.released) == (["orders", "orders"], ["orders-1"])
    prober.close()
    assert host.released == ["orders-1", "orders-2"]


def test_a_plugin_that_ends_at_every_question_is_asked_twice_and_no_more(host, manifest):
    prober = PluginProber(host)
    FakeClient.killed = 3
    with pytest.raises(TransientError, match="can't be reached"):
        prober.validate(manifest, "x", {}, {})
    assert (FakeClient.killed, host.acquired, host.released) == (1, ["orders"] * 2, ["orders-1", "orders-2"])


def test_an_idle_process_is_let_go(host, manifest, monkeypatch):
    monkeypatch.setattr(probe, "IDLE_RELEASE_S", 0.0)
    monkeypatch.setattr(probe, "SWEEP_INTERVAL_S", 0.01)
    prober = PluginProber(host)
    prober.describe(manifest)
    assert host.freed.wait(5)
    prober.close()
    assert host.released == ["orders-1"]
