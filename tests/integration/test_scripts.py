"""`connect-standalone` as an image of Kafka Connect starts it: settings in variables, and a secret that changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.rest import Rest
from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.ports import free_ports

pytestmark = pytest.mark.integration

FLOW_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
STARTED = ("Kafka version: 4.3.1", "Kafka Connect started", "Finished starting connectors and tasks")
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


def test_a_worker_of_variables_alone_follows_a_secret_that_changes(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    create_topic(kafka.bootstrap, "scripts")
    produce(kafka.bootstrap, "scripts", [b"one"])
    secret, old, new = (tmp_path / name for name in ("secret.properties", "old.txt", "new.txt"))
    secret.write_text(f"place={old}\n")
    connector = tmp_path / "sink.properties"
    connector.write_text(f"name=sink\nconnector.class=FileStreamSink\ntopics=scripts\nfile=${{vault:{secret}:place}}\n")
    port = free_ports(1)[0]
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "CONNECT_BOOTSTRAP_SERVERS": kafka.bootstrap,
        "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.storage.StringConverter",
        "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.storage.StringConverter",
        "CONNECT_OFFSET_STORAGE_FILE_FILENAME": str(tmp_path / "offsets"),
        "CONNECT_OFFSET_FLUSH_INTERVAL_MS": "500",
        "CONNECT_LISTENERS": f"http://127.0.0.1:{port}",
        "CONNECT_CONFIG_PROVIDERS": "vault",
        "CONNECT_CONFIG_PROVIDERS_VAULT_CLASS": PROVIDER,
        "CONNECT_CONFIG_PROVIDERS_VAULT_PARAM_TTL_MS": "1000",
        "CONNECT_CONFIG_PROVIDERS_VAULT_PARAM_ALLOWED_PATHS": str(tmp_path),
    }
    program = "from wherry.coordinator.cli.scripts import standalone; standalone()"
    log_path = tmp_path / "worker.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "-", str(connector)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
        )  # fmt: skip
    try:
        assert eventually(lambda: old.exists() and old.read_text() == "one\n", FLOW_TIMEOUT_S), log_path.read_text()
        secret.write_text(f"place={new}\n")
        # The sink opens the file when it starts; what the old one still gets before its end goes to the old file.
        assert eventually(new.exists, FLOW_TIMEOUT_S), log_path.read_text()
        produce(kafka.bootstrap, "scripts", [b"two"])
        assert eventually(lambda: new.read_text() == "two\n", FLOW_TIMEOUT_S), log_path.read_text()
        # REST and log show what was configured, never what it stands for.
        shown = Rest(f"http://127.0.0.1:{port}").get("/connectors/sink/config")
        assert shown["file"] == f"${{vault:{secret}:place}}"
        told = log_path.read_text()
        assert [line for line in (*STARTED, "A secret of sink has changed") if line not in told] == []
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert code == 0
