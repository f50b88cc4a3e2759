"""The coordinator's admin client, as far as no broker is needed."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.kafka import KafkaAdmin


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "k"},
            r"No provider for SASL mechanism GSSAPI.*has no Kerberos: install one",
        ),
        ({"ssl.ca.location": "/none.pem", "security.protocol": "SSL"}, r"ssl\.ca\.location failed.*Check the producer"),
        ({"linger.ms": "soon"}, r"Invalid value for configuration property"),
    ],
)
def test_settings_no_client_can_be_made_with_are_refused_with_a_remedy(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        KafkaAdmin({"bootstrap.servers": "127.0.0.1:1", **settings}).cluster_id()
