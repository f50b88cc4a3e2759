"""Kafka Connect's three topics as a worker file wants them: created, or checked when they are there.

A topic that is not compacted loses connectors, positions or states in time, and a config topic of several partitions
has no order: both are refused before anything is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.coordinator.kafka import KafkaAdmin

log = logging.getLogger(__name__)

_COMPACT: Final = "compact"
_POLICY: Final = "cleanup.policy"
_OWN_KEYS: Final = ("topic", "partitions", "replication.factor")
CREATION_KEY: Final = "internal.topics.automatic.creation.enable"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """One of the three.

    Attributes:
        kind: `config`, `offset` or `status`.
        name: The topic.
        partitions: Partitions to create it with; -1 for the broker's default.
        replicas: Replication factor to create it with; -1 for the broker's default.
        settings: Settings to create it with.
        may_create: Whether it is created when it is not there.
    """

    kind: str
    name: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]
    may_create: bool = True

    @property
    def key(self) -> str:
        """The worker's key that names it."""
        return f"{self.kind}.storage.topic"


def internal_topics(values: Mapping[str, str], parsed: Mapping[str, Any]) -> tuple[InternalTopic, ...]:
    """The topics for configurations, positions and states, in this order.

    Args:
        values: The worker's values as given.
        parsed: Its known keys by their types.

    Raises:
        ConfigError: Two of them are the same topic.
    """
    found = tuple(_internal_topic(kind, values, parsed) for kind in ("config", "offset", "status"))
    for earlier, later in ((0, 1), (0, 2), (1, 2)):
        if found[earlier].name == found[later].name:
            raise ConfigError(
                f"{found[earlier].key} and {found[later].key} both name {found[later].name}; each needs a topic of "
                "its own.",
                key=found[later].key,
            )
    return found


def ensure(admin: KafkaAdmin, topic: InternalTopic) -> bool:
    """Create a topic, or check the one that is there; True when it was created.

    Raises:
        ConfigError: It is there, and cannot serve; or it isn't, and may not be created.
        WherryError: Kafka refuses it or does not answer.
    """
    partitions = admin.topics().get(topic.name)
    if partitions is None and not topic.may_create:
        raise ConfigError(
            f"There is no topic {topic.name} ({topic.key}), and {CREATION_KEY}=false: create it with "
            f"{_POLICY}={_COMPACT}{' and a single partition' if topic.kind == 'config' else ''}.",
            key=topic.key,
        )
    created = partitions is None and _create(admin, topic)
    if not created:
        if partitions is None and (partitions := admin.topics().get(topic.name)) is None:
            raise TransientError(f"The topic {topic.name} was made a moment ago and is not known everywhere yet.")
        problem = check(admin, topic, partitions)
        if problem is not None:
            raise problem
    return created


def _create(admin: KafkaAdmin, topic: InternalTopic) -> bool:
    try:
        created = admin.create_topic(topic.name, topic.partitions, topic.replicas, topic.settings)
    except AuthError as error:
        raise ConfigError(
            f"{error.message} Create the topic {topic.name} ({topic.key}) yourself, with {_POLICY}={_COMPACT}, or "
            "grant the worker Create on it.",
            key=topic.key,
        ) from error
    except WherryError as error:
        hint = f" Is {topic.kind}.storage.replication.factor={topic.replicas} more than there are brokers?"
        raise type(error)(error.message + (hint if topic.replicas > 1 else "")) from error
    if created:
        log.info("Created the topic %s for %s", topic.name, topic.key)
    return created


def check(admin: KafkaAdmin, topic: InternalTopic, partitions: int) -> ConfigError | None:
    """Why a topic that is there, with so many partitions, cannot serve; None when it can."""
    if topic.kind == "config" and partitions != 1:
        return ConfigError(
            f"The topic {topic.name} ({topic.key}) has {partitions} partitions, but configurations have an order only "
            "in one: name a topic with a single partition.",
            key=topic.key,
        )
    try:
        policy = admin.topic_config(topic.name).get(_POLICY, "")
    except AuthError as error:
        log.warning("Whether %s (%s) is compacted cannot be seen: %s", topic.name, topic.key, error.message)
        return None
    if {part.strip() for part in policy.split(",")} == {_COMPACT}:
        return None
    return ConfigError(
        f"The topic {topic.name} ({topic.key}) has {_POLICY}={policy}, which would delete what must be kept: set it to "
        f"{_COMPACT}, as in kafka-configs.sh --alter --topic {topic.name} --add-config {_POLICY}={_COMPACT}.",
        key=topic.key,
    )


def _internal_topic(kind: str, values: Mapping[str, str], parsed: Mapping[str, Any]) -> InternalTopic:
    prefix = f"{kind}.storage."
    own = {prefix + key for key in _OWN_KEYS}
    settings = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
    settings = {key: value for key, value in settings.items() if prefix + key not in own}
    if settings.pop(_POLICY, _COMPACT) != _COMPACT:
        log.warning("%s%s is ignored: the topic has to be compacted.", prefix, _POLICY)
    return InternalTopic(
        kind,
        str(parsed[f"{prefix}topic"]),
        1 if kind == "config" else int(parsed[f"{prefix}partitions"]),
        int(parsed[f"{prefix}replication.factor"]),
        {_POLICY: _COMPACT, **settings},
        may_create=bool(parsed[CREATION_KEY]),
    )
