"""What a worker makes of its settings before anything is started."""

from __future__ import annotations

import socket
import stat

import pytest

from wherry.contract.errors import AuthError, ConfigError, TransientError
from wherry.coordinator import main
from wherry.coordinator.api import BadRequestError
from wherry.coordinator.config.connectorfile import ConnectorFile
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.main import StandaloneWorker
from wherry.coordinator.rest.server import Listener


@pytest.fixture
def settings(tmp_path):
    return {
        "bootstrap.servers": "127.0.0.1:1",
        "key.converter": "Json",
        "value.converter": "Json",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "listeners": "http://127.0.0.1:0",
        "wherry.state.dir": str(tmp_path / "state"),
        "wherry.kafka.start.timeout.ms": "50",
    }


@pytest.fixture
def made(settings):
    """A worker with all its parts, none started."""
    workers = []

    def make(*files, **changes):
        worker = StandaloneWorker(WorkerConfig.of({**settings, **changes}), files)
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker._temporary.close()


def test_a_worker_binds_its_port_before_anything_starts(made):
    worker = made()
    (url,) = worker.rest.urls
    port = int(url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=f"Port {port} is already in use"):
        Listener("127.0.0.1", port).bind()


def test_its_folder_is_for_itself_alone_and_goes_at_the_end(made, tmp_path):
    worker = made()
    (folder,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    worker._temporary.close()
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_told(made, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"Set wherry\.state\.dir to one that is writable"):
        made(**{"wherry.state.dir": str(tmp_path / "file/x")})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("listeners", "https://:8443", "listeners asks for https, which needs a key and a certificate"),
        ("listeners", "localhost:8083", "http://host:port or https://host:port is expected"),
        ("listeners", "http://no.such.host.invalid:80", "Listening on no.such.host.invalid:80 is not possible"),
        ("rest.extension.classes", "x.BasicAuth", "x.BasicAuth is Java code, which does not run here"),
        ("rest.extension.classes", "x.BasicAuthSecurityRestExtension", "no JAAS file says where they are"),
        ("admin.listeners", "ftp://:9999", "Invalid value ftp://:9999 for configuration admin.listeners"),
        ("response.http.headers.config", "nonsense", "'nonsense' is not 'action header:value'"),
        ("connector.client.config.override.policy", "Some", "one of All, None, Principal, Allowlist is expected"),
        ("value.converter", "Thrift", "Class Thrift could not be found"),
        ("ssl.truststore.location", "/x.jks", "The key store /x.jks cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_a_sentence(made, key, value, message):
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        made(**{key: value})


def test_two_files_may_not_define_one_connector(tmp_path):
    files = [ConnectorFile(tmp_path / name, "c", {}) for name in ("a.json", "b.json")]
    with pytest.raises(
        ConfigError, match=r"a\.json and .*b\.json both define the connector c: a name is given once only\."
    ):
        main._check_names(files)


def test_kafka_is_given_up_on_after_its_time(made):
    worker = made()
    worker._kafka = _Kafka(TransientError("Connection refused."))
    with pytest.raises(ConfigError, match=r"bootstrap\.servers=127\.0\.0\.1:1 could be reached within .* \(Connection"):
        worker._await_kafka()


def test_kafka_that_refuses_is_not_asked_again(made):
    worker = made()
    worker._kafka = _Kafka(AuthError("Authentication failed."))
    with pytest.raises(ConfigError, match="refuses this worker: Authentication failed"):
        worker._await_kafka()


def test_kafkas_id_is_told_once_it_is_known(made):
    worker = made()
    assert worker.herder.server_info().kafka_cluster_id == ""
    worker._kafka = _Kafka("abc")
    worker._await_kafka()
    assert worker.herder.server_info().kafka_cluster_id == "abc"


def test_a_connector_that_cannot_be_created_is_told_with_its_file(made, tmp_path, monkeypatch):
    file = ConnectorFile(tmp_path / "c.json", "c", {"name": "c"})
    worker = made(file)
    monkeypatch.setattr(worker.catalog, "check", _refuse)
    with pytest.raises(ConfigError, match=r"c\.json cannot be created: no such class"):
        worker._create(file)


def test_what_goes_wrong_behind_reaches_whoever_waits(made):
    worker = made()

    def fail():
        raise ConfigError("broken")

    worker._guard(fail)
    with pytest.raises(ConfigError, match="broken"):
        worker.wait(1)


def test_waiting_ends_in_good_time_when_nothing_happens(made):
    made().wait(0.01)


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
def test_a_listener_is_reached_at_its_host(host):
    bound = Listener(host, 0).bind()
    with bound, socket.create_connection(("127.0.0.1", bound.getsockname()[1]), 1):
        pass


class _Kafka:
    """Answers with an id, or raises."""

    def __init__(self, answer):
        self._answer = answer

    def cluster_id(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def _refuse(config):
    raise BadRequestError("no such class")
