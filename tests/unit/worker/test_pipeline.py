"""Making pipelines from grants, as far as that needs no server."""

from __future__ import annotations

import pytest

from wherry.contract.description import Role
from wherry.contract.errors import ConfigError, ConnectorBugError
from wherry.contract.plan import Work
from wherry.control.v1 import lease_pb2
from wherry.worker.pipeline import Pipeline, build
from wherry.worker.signals import Assignment

MIRROR = {
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
}


def grant(kind: int, **config: str) -> lease_pb2.OpenLeaseResponse:
    return lease_pb2.OpenLeaseResponse(
        kind=kind,  # type: ignore[arg-type]
        config={"name": "c", **config},
        worker_config={"bootstrap.servers": "127.0.0.1:1"},
    )


def test_an_unknown_kind_of_lease_is_refused() -> None:
    with pytest.raises(ConnectorBugError, match="kind 0"):
        build(grant(0), {})


def test_a_lease_without_its_sidecar_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="lease of c has no sink sidecar"):
        build(grant(2), {Role.SOURCE: "unix:///x"})


def test_a_wrong_setting_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(ConfigError, match=r"errors\.tolerance"):
        build(grant(2, **{"errors.tolerance": "some"}), {Role.SINK: "unix:///nowhere"})


def test_a_mirror_needs_no_sidecar() -> None:
    made = build(grant(4, **MIRROR), {})
    assert made.steps == ()
    assert not made.settles
    made.close()
    made.close()


def test_a_mirror_without_an_address_is_refused_by_the_key() -> None:
    with pytest.raises(ConfigError, match=r"source\.cluster\.bootstrap\.servers is not set"):
        build(grant(4), {})


def test_a_mirror_with_transforms_takes_keys_and_values_as_bytes() -> None:
    kind = "org.apache.kafka.connect.transforms.Filter"
    made = build(grant(4, **{"transforms": "f", "transforms.f.type": kind, **MIRROR}), {})
    assert [type(step).__name__ for step in made.steps] == ["ToConnect", "Transforms", "WriteHeaders", "FromConnect"]
    made.close()


def test_a_split_for_a_lease_that_reads_none_is_refused() -> None:
    made = build(grant(4, **MIRROR), {})
    with pytest.raises(ConnectorBugError, match="reads none"):
        made.open_split(Assignment(Work("a")))
    made.close()


def test_closing_goes_on_when_one_end_fails() -> None:
    closed: list[str] = []

    class Broken:
        def close(self) -> None:
            closed.append("reader")
            raise RuntimeError

    class Good:
        def close(self) -> None:
            closed.append("writer")

    Pipeline(Broken(), Good(), (), Good()).close()  # type: ignore[arg-type]
    assert closed == ["reader", "writer"]
