"""Listeners: https with Java's stores, and `/admin` on listeners of its own."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.keystores import key_entry
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.rest import tls
from wherry.coordinator.rest.site import RestSite

STORES = Path(__file__).parents[3] / "cases" / "keystores"
KEY = {
    "ssl.keystore.location": str(STORES / "key.jks"),
    "ssl.keystore.password": "storepass",
    "ssl.key.password": "keypass",
}
ANY = "http://127.0.0.1:0"
ANY_SECURE = "https://127.0.0.1:0"


@pytest.fixture
def serve(herder):
    """Starts the listeners of settings, and answers where each is."""
    started = []

    def start(**settings: str) -> list[str]:
        worker = WorkerConfig.of(
            {
                "bootstrap.servers": "x:1",
                "key.converter": "Json",
                "value.converter": "Json",
                "offset.storage.file.filename": "x",
                **settings,
            }
        )
        server = RestSite(worker, {}).serve(herder, version="1")
        started.append(server)
        server.start()
        return server.urls

    yield start
    for server in started:
        server.stop()


def ask(url: str, path: str, context: ssl.SSLContext | None = None) -> tuple[int, object]:
    scheme, _, place = url.partition("://")
    if scheme == "https":
        connection = http.client.HTTPSConnection(place, timeout=60, context=context or trusting())
    else:
        connection = http.client.HTTPConnection(place, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(STORES / "root.pem"))
    context.check_hostname = False
    return context


@pytest.mark.parametrize(
    "settings",
    [
        KEY,
        {f"listeners.https.{key}": value for key, value in KEY.items()} | {"ssl.keystore.location": "/none"},
        {"ssl.keystore.location": str(STORES / "key.p12"), "ssl.keystore.password": "storepass"},
    ],
    ids=["jks", "prefixed", "pkcs12"],
)
def test_https_is_served_with_the_key_of_a_java_store(serve, settings) -> None:
    secure, plain = serve(listeners=f"{ANY_SECURE},{ANY}", **settings)
    assert ask(secure, "/connectors") == ask(plain, "/connectors") == (200, ["c"])


def test_a_key_and_certificate_given_as_text_are_served_with(serve) -> None:
    entry = key_entry(STORES / "key.p12", "storepass")
    inline = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": entry.key_pem,
        "ssl.keystore.certificate.chain": entry.chain_pem,
    }
    (secure,) = serve(listeners=ANY_SECURE, **inline)
    assert ask(secure, "/connectors") == (200, ["c"])


def test_the_location_of_a_new_connector_speaks_https(serve) -> None:
    (secure,) = serve(listeners=ANY_SECURE, **KEY)
    connection = http.client.HTTPSConnection(secure.partition("://")[2], timeout=60, context=trusting())
    body = json.dumps({"name": "n", "config": {"a": "b"}})
    connection.request("POST", "/connectors", body, {"Content-Type": "application/json"})
    assert connection.getresponse().getheader("Location") == f"{secure}/connectors/n"
    connection.close()


def test_a_client_without_certificate_is_refused_where_one_is_required(serve, tmp_path) -> None:
    trust = {"ssl.truststore.location": str(STORES / "trust.jks"), "ssl.truststore.password": "trustpass"}
    (secure,) = serve(listeners=ANY_SECURE, **KEY, **trust, **{"ssl.client.auth": "required"})
    with pytest.raises((ssl.SSLError, ConnectionError)):  # TLS 1.3 tells only at the first read
        ask(secure, "/connectors")
    entry = key_entry(STORES / "key.jks", "storepass", "keypass")
    file = tmp_path / "client.pem"
    file.write_text(entry.key_pem + entry.chain_pem)
    context = trusting()
    context.load_cert_chain(file)
    assert ask(secure, "/connectors", context) == (200, ["c"])


def test_admin_has_listeners_of_its_own(serve) -> None:
    main, admin = serve(listeners=ANY, **{"admin.listeners": "http://localhost:0"})
    assert ask(main, "/connectors")[0] == 200
    assert ask(main, "/admin/loggers")[0] == 404
    assert ask(admin, "/admin/loggers")[0] == 200
    assert ask(admin, "/connectors")[0] == 404


def test_admin_is_served_nowhere_with_an_empty_list(serve) -> None:
    (main,) = serve(listeners=ANY, **{"admin.listeners": ""})
    assert ask(main, "/admin/loggers")[0] == 404


def test_admins_own_key_is_told_apart(serve) -> None:
    own = {f"admin.listeners.https.{key}": value for key, value in KEY.items()}
    main, admin = serve(listeners=ANY, **{"admin.listeners": ANY_SECURE}, **own)
    assert ask(main, "/connectors")[0] == 200
    assert ask(admin, "/admin/loggers")[0] == 200


def test_one_prefixed_setting_makes_all_others_of_the_listeners_count_for_nothing() -> None:
    values = {"ssl.key.password": "a", "listeners.https.ssl.protocol": "TLS", "group.id": "g"}
    assert tls.settings(values, tls.MAIN_PREFIX) == {"ssl.protocol": "TLS"}
    assert tls.settings(values, tls.ADMIN_PREFIX) == {"ssl.key.password": "a"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssl.keystore.location": ""}, "listeners asks for https, which needs a key and a certificate"),
        ({"ssl.keystore.password": "wrong"}, "ssl.keystore.location"),
        ({"ssl.client.auth": "maybe"}, "one of none, requested, required is expected"),
        ({"ssl.enabled.protocols": "SSLv3"}, "names none of TLSv1.2, TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "leaves no cipher that is known here"),
    ],
)
def test_a_setting_that_cannot_be_served_with_is_told(changes, message) -> None:
    with pytest.raises(ConfigError, match=message):
        tls.server_context({**KEY, **changes}, "listeners")


TRUST = {"ssl.truststore.location": str(STORES / "trust.jks"), "ssl.truststore.password": "trustpass"}
ANY_NAME = {"ssl.endpoint.identification.algorithm": ""}


def test_another_worker_is_asked_with_the_stores_that_this_one_serves_with(serve) -> None:
    (secure,) = serve(listeners=ANY_SECURE, **KEY, **TRUST, **{"ssl.client.auth": "required"})
    assert ask(secure, "/connectors", tls.client_context({**KEY, **TRUST, **ANY_NAME}, "x")) == (200, ["c"])


def test_another_worker_is_asked_with_stores_in_pem_too(serve, tmp_path) -> None:
    (secure,) = serve(listeners=ANY_SECURE, **KEY, **TRUST, **{"ssl.client.auth": "required"})
    entry = key_entry(STORES / "key.jks", "storepass", "keypass")
    file = tmp_path / "client.pem"
    file.write_text(entry.key_pem + entry.chain_pem)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(STORES / "root.pem"),
    }
    assert ask(secure, "/connectors", tls.client_context({**settings, **ANY_NAME}, "x")) == (200, ["c"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [(TRUST, "(?i)hostname|IP address"), (ANY_NAME, "unable to get|self.signed"), (KEY, "unable to get|self.signed")],
    ids=["name that is another", "nothing trusted", "key alone"],
)
def test_another_worker_that_cannot_be_known_is_not_asked(serve, settings, message) -> None:
    (secure,) = serve(listeners=ANY_SECURE, **KEY)
    with pytest.raises(ssl.SSLError, match=message):
        ask(secure, "/connectors", tls.client_context(settings, "x"))


def test_stores_that_cannot_be_read_are_told_when_others_are_to_be_asked() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location"):
        tls.client_context({**KEY, **TRUST, "ssl.truststore.password": "wrong"}, "listeners")
