"""Which client settings a connector may override: Kafka Connect's policies All, None, Principal and Allowlist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wherry.contract.errors import ConfigError

PREFIXES = ("producer.override.", "consumer.override.", "admin.override.")
_PRINCIPAL = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_POLICIES = ("All", "None", "Principal", "Allowlist")


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """One policy; `allowlist` counts for Allowlist only."""

    name: str = "All"
    allowlist: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, allowlist: list[str]) -> OverridePolicy:
        """The policy that `connector.client.config.override.policy` names.

        Raises:
            ConfigError: It names none of Kafka's.
        """
        key = "connector.client.config.override.policy"
        simple = name.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
        if simple not in _POLICIES:
            raise ConfigError(
                f"Invalid value {name} for configuration {key}: one of {', '.join(_POLICIES)} is expected.", key=key
            )
        return cls(simple, frozenset(allowlist))

    def problems(self, config: Mapping[str, str | None]) -> dict[str, list[str]]:
        """What is wrong with the overrides of a connector, by key."""
        return {
            key: [
                f"The '{self.name}' policy does not allow '{setting}' to be overridden in the connector configuration."
            ]
            for key, setting in _overrides(config)
            if not self._allows(setting)
        }

    def _allows(self, setting: str) -> bool:
        match self.name:
            case "All":
                return True
            case "None":
                return False
            case "Principal":
                return setting in _PRINCIPAL
            case _:
                return setting in self.allowlist


def _overrides(config: Mapping[str, str | None]) -> list[tuple[str, str]]:
    # What names nothing behind its prefix overrides nothing, whatever the policy says.
    return [
        (key, key[len(prefix) :]) for key in config for prefix in PREFIXES if key.startswith(prefix) and key != prefix
    ]
