"""Creating the topics a source writes to: the admin call that makes one, with what the contract's rules say it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.contract.kafka_clients import ClientConfig
from wherry.contract.leaders import await_leaders
from wherry.contract.topic_creation import TopicRules
from wherry.worker.endpoints.kafka_errors import error_of
from wherry.worker.endpoints.kafka_logging import client_logger

CREATE_TIMEOUT_S: Final = 30.0


def offsets_topic_rules(worker_config: Mapping[str, str]) -> TopicRules:
    """How a connector's own offsets topic is created: as the worker's is, always compacted."""
    prefix = "offset.storage."
    own = {key.removeprefix(prefix): value for key, value in worker_config.items() if key.startswith(prefix)}
    for key in ("topic", "file.filename"):
        own.pop(key, None)
    rule = {"partitions": "25", "replication.factor": "3", **own, "cleanup.policy": "compact"}
    return TopicRules((("default", rule),))


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
        from confluent_kafka.admin import NewTopic

        if self._admin is None:
            self._admin = self._connected()
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
                raise _refusal(error.args[0], topic) from error
        except TimeoutError as error:
            raise TransientError(f"Creating topic {topic} took longer than {CREATE_TIMEOUT_S:.0f} s.") from error
        # Without an answer in time records wait for their leaders as well, only not for sure in order.
        await_leaders(self._connected, topic)

    def _connected(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(dict[str, Any](self._config.values) | {"logger": client_logger("admin")})


def _refusal(error: Any, topic: str) -> WherryError:
    """Why the broker did not make a topic; what it says of the settings goes out as it is."""
    from confluent_kafka import KafkaError

    code, name = error.code(), error.name()
    if code in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}:
        return AuthError(
            f"Creating topic {topic} failed: {error.str()} ({name}). Ensure that the task is authorized to create "
            "topics or that the topic exists, and restart the task.",
            reason=name,
        )
    # Asked again it would say the same.
    if code in {
        KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.POLICY_VIOLATION,
    }:  # fmt: skip
        return ConfigError(
            f"Unable to create topic {topic}: {error.str().rstrip('.')} ({name}). Correct its topic.creation.* settings"
            " or create it yourself, and restart the task.",
            reason=name,
        )
    return error_of(error, f"Creating topic {topic}")
