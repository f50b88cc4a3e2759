"""Converters before a registry that is guarded, slow, in trouble or gone.

The registry is real; TLS, credentials and troubles are those of a proxy before it.
"""

from __future__ import annotations

import base64
import ssl
import time
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from tests.support.registry_proxy import Door, guarded
from tests.support.secured import KEY_PASSWORD, STORE_PASSWORD, Papers, make_pair

from wherry.contract.errors import AuthError, TransientError
from wherry.coordinator.dev.registry import LocalRegistry
from wherry.worker.convert.registered import access
from wherry.worker.convert.registry import converters_of

AVRO = "io.confluent.connect.avro.AvroConverter"
SSL = "value.converter.schema.registry.ssl."


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers.make(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


def server_context(folder: Path, papers: Papers, *, mutual: bool) -> ssl.SSLContext:
    """TLS with a certificate of an authority that nobody trusts but who has the papers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = folder / "server.pem"
    context.load_verify_locations(papers.root_pem)
    from cryptography.hazmat.primitives.serialization import pkcs12

    key, certificate, _ = pkcs12.load_key_and_certificates(papers.broker.read_bytes(), STORE_PASSWORD.encode())
    assert key is not None
    assert certificate is not None
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context.load_cert_chain(pem)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def converter(url: str, **settings: str) -> Any:
    config = {"value.converter": AVRO, "value.converter.schema.registry.url": url, **settings}
    return converters_of(config, {}).value


def rows(count: int = 3) -> tuple[pa.Field, pa.Array]:
    records = pa.StructArray.from_arrays([pa.array(range(count))], names=["a"])
    return pa.field("value", records.type), records


def goes_round(url: str, topic: str, **settings: str) -> bool:
    """Whether what one converter writes another reads."""
    written = converter(url, **settings).from_connect(topic, *rows())
    assert written.failures == ()
    read = converter(url, **settings).to_connect(topic, written.runs[0].column)
    return bool(read.runs[0].column.to_pylist() == rows()[1].to_pylist())


def jks(papers: Papers) -> dict[str, str]:
    return {f"{SSL}truststore.location": str(papers.trust_jks), f"{SSL}truststore.password": STORE_PASSWORD}


def test_a_trust_store_of_java_opens_tls_and_without_it_nothing_goes(
    registry: LocalRegistry, papers: Papers, tmp_path: Path, topic: str
) -> None:
    with guarded(registry.url, server_context(tmp_path, papers, mutual=False)) as door:
        url = door.url(tls=True)
        assert goes_round(url, topic, **jks(papers))
        pem = {f"{SSL}truststore.location": str(papers.root_pem), f"{SSL}truststore.type": "PEM"}
        assert goes_round(url, topic, **pem)
        with pytest.raises(TransientError, match=r"doesn't answer.*certificate"):
            goes_round(url, topic)


def test_a_client_certificate_out_of_a_key_store_is_shown_with_its_chain(
    registry: LocalRegistry, papers: Papers, tmp_path: Path, topic: str
) -> None:
    with guarded(registry.url, server_context(tmp_path, papers, mutual=True)) as door:
        url = door.url(tls=True)
        own = {
            f"{SSL}keystore.location": str(papers.client_jks),
            f"{SSL}keystore.password": STORE_PASSWORD,
            f"{SSL}key.password": KEY_PASSWORD,
        }
        assert goes_round(url, topic, **jks(papers), **own)
        with pytest.raises(TransientError, match="doesn't answer"):
            goes_round(url, topic, **jks(papers))


def test_a_certificate_of_another_host_is_refused_unless_that_is_switched_off(
    registry: LocalRegistry, tmp_path: Path, topic: str
) -> None:
    pair = make_pair("elsewhere", authority=True)
    pem, trust = tmp_path / "s.pem", tmp_path / "t.pem"
    certificate = pair.certificate.public_bytes(serialization.Encoding.PEM)
    pem.write_bytes(
        pair.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate
    )
    trust.write_bytes(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with guarded(registry.url, context) as door:
        # The certificate is of 127.0.0.1, and not of this name.
        url = door.url(tls=True).replace("127.0.0.1", "localhost")
        trusts = {f"{SSL}truststore.location": str(trust), f"{SSL}truststore.type": "PEM"}
        with pytest.raises(TransientError, match="doesn't answer"):
            goes_round(url, topic, **trusts)
        assert goes_round(url, topic, **trusts, **{f"{SSL}endpoint.identification.algorithm": ""})


@pytest.mark.parametrize(
    ("authorization", "settings"),
    [
        ("Basic " + base64.b64encode(b"u:p:w").decode(), {
            "basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "u:p:w",
        }),
        ("Bearer token", {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "token"}),
    ],
)  # fmt: skip
def test_who_has_credentials_comes_in_and_who_has_none_is_told(
    registry: LocalRegistry, topic: str, authorization: str, settings: dict[str, str]
) -> None:
    with guarded(registry.url, door=Door(authorization=authorization)) as door:
        given = {f"value.converter.{name}": value for name, value in settings.items()}
        assert goes_round(door.url(tls=False), topic, **given)
        with pytest.raises(AuthError, match="answered 401"):
            goes_round(door.url(tls=False), topic)


def test_a_name_in_the_address_counts_too(registry: LocalRegistry, topic: str) -> None:
    authorization = "Basic " + base64.b64encode(b"u:p").decode()
    with guarded(registry.url, door=Door(authorization=authorization)) as door:
        assert goes_round(door.url(tls=False).replace("//", "//u:p@"), topic)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_trouble_that_passes_is_waited_out_within_the_call(registry: LocalRegistry, topic: str, status: int) -> None:
    with guarded(registry.url, door=Door(troubles=[status])) as door:
        assert goes_round(door.url(tls=False), topic)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_trouble_that_stays_is_the_batchs_and_passes_with_it(registry: LocalRegistry, topic: str, status: int) -> None:
    with guarded(registry.url, door=Door(troubles=[status] * 50)) as door:
        this = converter(door.url(tls=False))
        begun = time.monotonic()
        with pytest.raises(TransientError, match=str(status)):
            this.from_connect(topic, *rows())
        assert time.monotonic() - begun < 60
        door.troubles.clear()
        assert this.from_connect(topic, *rows()).failures == ()


def test_a_registry_that_comes_late_or_goes_is_found_again(registry: LocalRegistry, topic: str) -> None:
    with guarded(registry.url) as door:
        pass
    this = converter(door.url(tls=False))
    with pytest.raises(TransientError, match="doesn't answer"):
        this.from_connect(topic, *rows())
    with guarded(registry.url, door=door):
        [framed] = this.from_connect(topic, *rows()).runs
    # What is known needs no registry; what isn't, does.
    assert this.from_connect(topic, *rows()).runs[0].column == framed.column
    other = pa.StructArray.from_arrays([pa.array(["x"])], names=["b"])
    with pytest.raises(TransientError):
        this.from_connect(topic, pa.field("value", other.type), other)


def test_a_registry_that_never_answers_holds_nobody_for_ever(
    registry: LocalRegistry, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "REQUEST_TIMEOUT_S", 0.3)
    with guarded(registry.url, door=Door(delay_s=50.0)) as door:
        begun = time.monotonic()
        with pytest.raises(TransientError, match="doesn't answer"):
            converter(door.url(tls=False)).from_connect(topic, *rows())
        assert time.monotonic() - begun < 40


def test_what_is_known_is_not_asked_for_again(registry: LocalRegistry, topic: str) -> None:
    with guarded(registry.url) as door:
        this = converter(door.url(tls=False))
        for _ in range(20):
            framed = this.from_connect(topic, *rows()).runs[0].column
            this.to_connect(topic, framed)
        assert len(door.seen) <= 3  # registered once, fetched once with its version


def test_a_schema_that_must_not_be_registered_fails_the_rows(registry: LocalRegistry, topic: str) -> None:
    this = converter(registry.url, **{"value.converter.auto.register.schemas": "false"})
    [first, *_] = this.from_connect(topic, *rows()).failures
    assert "404" in str(first.error)
    schema = '{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro","fields":[]}'
    httpx2.post(f"{registry.url}/subjects/{topic}-value/versions", json={"schema": schema}).raise_for_status()
    assert this.from_connect(topic, *rows()).failures  # another schema of the subject is not this one
