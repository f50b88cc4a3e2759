"""A broker behind TLS and SASL, reached with the settings and key stores of a Java worker file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.secured import KEY_PASSWORD, STORE_PASSWORD, USER, USER_PASSWORD, SecuredKafka, secured_kafka
from tests.support.standalone import Standalone
from tests.support.topics import group_offsets
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

FLOW_TIMEOUT_S = 120.0
LINES = [f"line {number}" for number in range(500)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("papers")) as kafka:
        yield kafka


def texts_below(folder: Path) -> Iterator[bytes]:
    """What lies in the files below a folder, in those that stay long enough to be read."""
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                yield path.read_bytes()


def jaas_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def worker_settings(secured: SecuredKafka, password: str = USER_PASSWORD) -> dict[str, str]:
    """Three doors for three clients: OAuth for the worker's own, SCRAM for producers, certificates for consumers."""
    papers = secured.papers
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": secured.token_url,
        "sasl.login.callback.handler.class":
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="wherry" clientSecret="oauth-secret";',
        "producer.bootstrap.servers": secured.scram,
        "producer.security.protocol": "SASL_SSL",
        "producer.sasl.mechanism": "SCRAM-SHA-512",
        "producer.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{USER}" password="{jaas_text(password)}";',
        "producer.ssl.truststore.location": str(papers.trust_jks),
        "producer.ssl.truststore.password": STORE_PASSWORD,
        "consumer.bootstrap.servers": secured.mutual,
        "consumer.security.protocol": "SSL",
        "consumer.ssl.truststore.location": str(papers.trust_p12),
        "consumer.ssl.truststore.type": "PKCS12",
        "consumer.ssl.truststore.password": STORE_PASSWORD,
        "consumer.ssl.keystore.location": str(papers.client_jks),
        "consumer.ssl.keystore.password": STORE_PASSWORD,
        "consumer.ssl.key.password": KEY_PASSWORD,
    }  # fmt: skip


def test_lines_go_through_a_guarded_broker_with_the_stores_of_a_java_worker(
    secured: SecuredKafka, tmp_path: Path
) -> None:
    """File to topic with SCRAM over TLS, topic to file with a client certificate, one of the sinks by overrides."""
    given, taken, over = (tmp_path / name for name in ("in.txt", "out.txt", "over.txt"))
    given.write_text("\n".join(LINES) + "\n")
    papers = secured.papers
    sink = {"connector.class": "FileStreamSink", "topics": "guarded"}
    connectors = {
        "source": {"connector.class": "FileStreamSource", "file": str(given), "topic": "guarded"},
        "sink": {**sink, "file": str(taken)},
        "over": {
            **sink, "file": str(over), "consumer.override.ssl.keystore.location": str(papers.client_p12),
            "consumer.override.ssl.key.password": STORE_PASSWORD,
        },
    }  # fmt: skip
    with Standalone(bootstrap=secured.oauth, connectors=connectors, settings=worker_settings(secured)) as worker:
        for file in (taken, over):
            assert eventually(
                lambda file=file: file.exists() and file.read_text().splitlines() == LINES, FLOW_TIMEOUT_S
            ), f"{file.name}: {worker.rest.get('/connectors?expand=status')}\n{worker.log_tail()}"
        committed = eventually(
            lambda: group_offsets(secured.open, "connect-sink", "guarded").get(("guarded", 0)) == len(LINES), 60
        )
        assert committed, "the group's offsets are not to be seen by lag tools"
        secrets = (STORE_PASSWORD, KEY_PASSWORD, USER_PASSWORD, "oauth-secret", "PRIVATE KEY")
        assert not [secret for secret in secrets if secret in worker.log_path.read_text()]
        assert not [text for text in texts_below(worker.temporary) if b"PRIVATE KEY" in text], (
            "a converted key lies there"
        )


def test_a_wrong_password_fails_the_task_with_a_sentence(secured: SecuredKafka, tmp_path: Path) -> None:
    given = tmp_path / "in.txt"
    given.write_text("line\n")
    source = {"connector.class": "FileStreamSource", "file": str(given), "topic": "guarded", "name": "source"}
    settings = {**worker_settings(secured, password="wrong"), "wherry.restart.enabled": "false"}
    with Standalone(bootstrap=secured.oauth, connectors={"source": source}, settings=settings) as worker:

        def failed() -> bool:
            answer = worker.rest.call("GET", "/connectors/source/status")
            return answer.status == 200 and any(task["state"] == "FAILED" for task in answer.body["tasks"])

        assert eventually(failed, FLOW_TIMEOUT_S), worker.log_tail()
        trace = worker.rest.get("/connectors/source/status")["tasks"][0]["trace"]
        assert "uthenticat" in trace
        assert "wrong" not in trace
