"""Coordinators that ask one another over https, each side knowing the other by a certificate of a private authority."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.distributed import Distributed
from tests.support.secured import KEY_PASSWORD, STORE_PASSWORD, Papers
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.ports import LOOPBACK, free_ports

pytestmark = pytest.mark.integration
START_TIMEOUT_S = 120.0
CONFIG = {"connector.class": "FileStreamSource", "file": "/none", "topic": "t"}


def jks(papers: Papers) -> dict[str, str]:
    """A worker whose settings bear the prefix of its listeners."""
    settings = {
        "ssl.keystore.location": str(papers.client_jks),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": KEY_PASSWORD,
        "ssl.truststore.location": str(papers.trust_jks),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.client.auth": "required",
    }
    return {f"listeners.https.{key}": value for key, value in settings.items()}


def pkcs12(papers: Papers) -> dict[str, str]:
    """A worker whose settings bear none."""
    return {
        "ssl.keystore.location": str(papers.broker),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": str(papers.root_pem),
        "ssl.truststore.type": "PEM",
        "ssl.client.auth": "required",
    }


def stranger(papers: Papers) -> dict[str, str]:
    """A worker that can serve, and trusts nobody's private authority."""
    return {key: value for key, value in pkcs12(papers).items() if "truststore" not in key and "auth" not in key}


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Distributed]]:
    """The leader with the first settings, and two that are none."""
    papers = Papers.make(tmp_path_factory.mktemp("papers"))
    group = f"https-{uuid.uuid4().hex[:8]}"
    members = []
    try:
        for settings in (jks(papers), pkcs12(papers), stranger(papers)):
            secure = f"https://{LOOPBACK}:{free_ports(1)[0]}"
            more = {"listeners": secure, "rest.advertised.listener": "https", "wherry.standby": "cold"}
            member = Distributed(bootstrap=kafka.bootstrap, group=group, settings={**settings, **more})
            members.append(member)
            member.start()
            healthy = eventually(member.rest.is_healthy, START_TIMEOUT_S)
            assert healthy, member.log_tail()
        yield members
    finally:
        for member in reversed(members):
            member.close()


def test_a_change_goes_to_a_leader_that_wants_to_see_a_certificate(cluster: list[Distributed]) -> None:
    leader, follower, _ = cluster
    answer = follower.rest.call("POST", "/connectors", {"name": "c", "config": CONFIG, "initial_state": "STOPPED"})
    assert (answer.status, answer.headers["Location"]) == (201, f"{follower.rest.url}/connectors/c")
    assert leader.rest.get("/connectors/c/config") == {**CONFIG, "name": "c"}
    assert follower.rest.call("DELETE", "/connectors/none").body["message"] == "Connector none not found"


def test_a_worker_that_does_not_trust_the_leader_says_so(cluster: list[Distributed], tmp_path: Path) -> None:
    answer = cluster[2].rest.call("PUT", "/connectors/c/pause")
    assert answer.status == 500
    assert answer.body["message"].startswith("IO Error trying to forward REST request: ")
    assert "certificate verify failed" in answer.body["message"]
    assert "Traceback" not in cluster[2].log_path.read_text()
