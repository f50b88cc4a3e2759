"""Creating the topics a source writes to: which settings a topic gets, and the admin call that makes it.

Kafka Connect's rules: without `topic.creation.*` the broker creates topics by itself; with it, the first group whose
`include` matches wins, and the default group takes the rest.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.kafka_clients import ClientConfig
from wherry.worker.endpoints.kafka_errors import error_of
from wherry.worker.endpoints.kafka_logging import client_logger

CREATE_TIMEOUT_S: Final = 30.0
_PREFIX: Final = "topic.creation."
_DEFAULT: Final = "default"
_OWN_KEYS: Final = frozenset({"include", "exclude", "replication.factor", "partitions"})


@dataclasses.dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a topic is created; -1 leaves a number to the broker."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class TopicRules:
    """The `topic.creation.*` keys of a connector, in their order."""

    groups: tuple[tuple[str, Mapping[str, str]], ...]

    @classmethod
    def of(cls, config: Mapping[str, str], worker_config: Mapping[str, str]) -> TopicRules | None:
        """Reads the rules; None when the broker is to create topics.

        Raises:
            ConfigError: The default group misses its partitions or replication factor.
        """
        enabled = worker_config.get("topic.creation.enable", "true").strip().lower() == "true"
        if not enabled or not any(key.startswith(f"{_PREFIX}{_DEFAULT}.") for key in config):
            return None
        names = [name.strip() for name in config.get(f"{_PREFIX}groups", "").split(",") if name.strip()]
        groups = []
        for name in [*(name for name in names if name != _DEFAULT), _DEFAULT]:
            prefix = f"{_PREFIX}{name}."
            groups.append(
                (name, {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)})
            )
        default = groups[-1][1]
        for key in ("partitions", "replication.factor"):
            if key not in default:
                raise ConfigError(
                    f"{_PREFIX}{_DEFAULT}.{key} must be set when topic.creation is used.",
                    key=f"{_PREFIX}{_DEFAULT}.{key}",
                )
        return cls(tuple(groups))

    def settings(self, topic: str) -> TopicSettings:
        """Returns the settings of a topic by the first group that matches."""
        default = self.groups[-1][1]
        chosen = next((group for name, group in self.groups if name == _DEFAULT or _matches(group, topic)), default)
        merged = {**{key: default[key] for key in ("partitions", "replication.factor")}, **chosen}
        extra = {key: value for key, value in chosen.items() if key not in _OWN_KEYS}
        return TopicSettings(_number(merged, "partitions"), _number(merged, "replication.factor"), extra)


def offsets_topic_rules(worker_config: Mapping[str, str]) -> TopicRules:
    """How a connector's own offsets topic is created: as the worker's is, always compacted."""
    prefix = "offset.storage."
    own = {key.removeprefix(prefix): value for key, value in worker_config.items() if key.startswith(prefix)}
    for key in ("topic", "file.filename"):
        own.pop(key, None)
    rule = {"partitions": "25", "replication.factor": "3", **own, "cleanup.policy": "compact"}
    return TopicRules(((_DEFAULT, rule),))


class TopicCreator:
    """Creates a topic before the first record goes to it. Makes its admin client when first needed."""

    def __init__(self, rules: TopicRules, admin: ClientConfig) -> None:
        self._rules = rules
        self._config = admin
        self._admin: Any = None

    def ensure(self, topic: str) -> None:
        """Creates the topic unless it exists.

        Raises:
            WherryError: The broker refused, or did not answer in time.
        """
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        if self._admin is None:
            self._admin = AdminClient(dict[str, Any](self._config.values) | {"logger": client_logger("admin")})
        if topic in self._admin.list_topics(timeout=CREATE_TIMEOUT_S).topics:
            return
        settings = self._rules.settings(topic)
        new = NewTopic(topic, settings.partitions, settings.replication_factor, config=dict(settings.config))
        future = self._admin.create_topics([new], operation_timeout=CREATE_TIMEOUT_S)[topic]
        try:
            future.result(timeout=CREATE_TIMEOUT_S)
        except KafkaException as error:
            # Another task was quicker.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise error_of(error.args[0], f"Creating topic {topic}") from error
        except TimeoutError as error:
            raise TransientError(f"Creating topic {topic} took longer than {CREATE_TIMEOUT_S:.0f} s.") from error


def _matches(group: Mapping[str, str], topic: str) -> bool:
    def one_of(key: str) -> bool:
        return any(re.fullmatch(pattern.strip(), topic) for pattern in group.get(key, "").split(",") if pattern.strip())

    return one_of("include") and not one_of("exclude")


def _number(group: Mapping[str, str], key: str) -> int:
    try:
        return int(group[key])
    except ValueError:
        raise ConfigError(
            f"Invalid value {group[key]} for {_PREFIX}…{key}: Not a number of type INT.", key=key
        ) from None
