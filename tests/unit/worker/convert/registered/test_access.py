"""How a registry is reached: Confluent's names in, settings of the client out."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from tests.support.secured import STORE_PASSWORD, make_pair

from wherry.contract.errors import ConfigError
from wherry.worker.convert.registered.access import access_of

URL = {"schema.registry.url": "https://registry:8081"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p:w";'


@pytest.mark.parametrize("prefix", ["", "schema.registry."])
@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (
            {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "u:p"},
            "basic.auth.user.info",
            "u:p",
        ),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.jaas.config": JAAS},
            "basic.auth.user.info",
            "u:p:w",
        ),
        ({"bearer.auth.token": "t"}, "bearer.auth.token", "t"),
        ({"proxy.host": "p", "proxy.port": "3128"}, "proxy", "http://p:3128"),
    ],
)
def test_who_we_are_reaches_the_client(prefix: str, config: dict[str, str], key: str, value: str) -> None:
    given = {f"{prefix}{name}": text for name, text in config.items()}
    assert access_of(URL | given).client[key] == value


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"schema.registry.url": " "}, "schema.registry.url"),
        ({"schema.registry.url": "registry:8081"}, "schema.registry.url"),
        (URL | {"basic.auth.credentials.source": "NOBODY"}, "basic.auth.credentials.source"),
        (URL | {"basic.auth.credentials.source": "USER_INFO"}, "basic.auth.user.info"),
        (URL | {"basic.auth.credentials.source": "SASL_INHERIT"}, "sasl.jaas.config"),
        (URL | {"bearer.auth.credentials.source": "OAUTHBEARER"}, "bearer.auth.credentials.source"),
        (URL | {"bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token"),
        (URL | {"schema.registry.ssl.truststore.location": "/x.jks"}, "schema.registry.ssl.truststore.location"),
    ],
)
def test_settings_that_cannot_be_used_are_told_by_key(config: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access_of(config)
    assert caught.value.key == key


def test_a_name_in_the_address_is_never_shown() -> None:
    access = access_of({"schema.registry.url": "https://u:secret@a:1, http://b:2"})
    assert access.shown == "https://a:1,http://b:2"
    assert "secret" not in repr(access)
    with pytest.raises(ConfigError, match="contradict") as caught:
        access_of(
            {
                "schema.registry.url": "https://u:secret@a:1",
                "basic.auth.credentials.source": "USER_INFO",
                "basic.auth.user.info": "u:other",
            }
        )
    assert "secret" not in str(caught.value)


def test_stores_of_java_reach_openssl_and_no_disk(tmp_path: Path) -> None:
    root = make_pair("root", authority=True)
    sealed = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
    client_pair = make_pair("client", root)
    trust, key = tmp_path / "trust", tmp_path / "key"
    trust.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [root.certificate], sealed))
    key.write_bytes(pkcs12.serialize_key_and_certificates(b"c", client_pair.key, client_pair.certificate, None, sealed))
    config = {
        "schema.registry.ssl.truststore.location": str(trust),
        "schema.registry.ssl.truststore.password": STORE_PASSWORD,
        "schema.registry.ssl.keystore.location": str(key),
        "schema.registry.ssl.keystore.password": STORE_PASSWORD,
    }
    before = set(tmp_path.iterdir())
    access = access_of(URL | config)
    client: Any = access.connect()
    context = client._rest_client.verify
    assert isinstance(context, ssl.SSLContext)
    assert [dict(part[0] for part in each["subject"])["commonName"] for each in context.get_ca_certs()] == ["root"]
    assert "BEGIN" not in repr(access)
    assert set(tmp_path.iterdir()) == before
    assert context.check_hostname
    lax = access_of(URL | config | {"schema.registry.ssl.endpoint.identification.algorithm": ""})
    assert not lax.connect()._rest_client.verify.check_hostname
