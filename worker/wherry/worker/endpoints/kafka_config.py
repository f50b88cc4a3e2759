"""What a lease's Kafka clients are made with: the lease's own defaults and demands around the user's settings.

The user's come from `wherry.contract.kafka_clients`, which translates them and settles who wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from wherry.contract.errors import ConfigError
from wherry.contract.kafka_clients import (
    JAVA_DEFAULTS,
    ClientConfig,
    ClientKind,
    ClientValue,
    resolve,
    translate,
)
from wherry.contract.mirror import client_settings

# The queue of fetched records holds this many kbytes at most; librdkafka's own default is 64 MiB per consumer.
QUEUED_KBYTES: Final = 16_384
FETCH_BYTES: Final = 2 * 1024 * 1024
# A full queue is looked at again so soon; librdkafka waits a whole second by itself.
QUEUE_FULL_WAIT_MS: Final = 2
# How long a broker may hold a fetch that it can't fill. Data that is there is sent at once.
FETCH_WAIT_MS: Final = 500
PRODUCER_QUEUE_KBYTES: Final = 32_768
PRODUCER_QUEUE_MESSAGES: Final = 200_000
DELIVERY_TIMEOUT_MS: Final = 2_147_483_647
# Java's default of transaction.timeout.ms, and the longest that brokers allow by default.
TRANSACTION_MS: Final = 60_000
TRANSACTION_MS_MAX: Final = 900_000
# With more requests under way an idempotent producer could not keep the order.
IN_FLIGHT_MAX: Final = 5


def reader_config(
    connector: str, task: int, config: Mapping[str, str], worker_config: Mapping[str, str]
) -> ClientConfig:
    """Settings of a sink task's consumer."""
    named = {"client.id": f"connector-consumer-{connector}-{task}"}
    return _reader(connector, resolve("consumer", worker=worker_config, connector=config, defaults=named))


def mirror_config(connector: str, task: int, config: Mapping[str, str], cluster: str, kind: ClientKind) -> ClientConfig:
    """Settings of a mirror's own client of one of its clusters (`source` or `target`)."""
    given = client_settings(config, cluster, kind)
    if not given.get("bootstrap.servers", "").strip():
        key = f"{cluster}.cluster.bootstrap.servers"
        raise ConfigError(f"{key} is not set; it names the brokers of the {cluster} cluster as host:port.", key=key)
    named = {"client.id": f"{connector}-{task}|{cluster}-{kind}"}
    client = translate(kind, {**JAVA_DEFAULTS, **named, **given})
    return _reader(connector, client) if kind == "consumer" else client


def _reader(connector: str, client: ClientConfig) -> ClientConfig:
    values: dict[str, ClientValue] = {
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        "fetch.message.max.bytes": FETCH_BYTES,
        "fetch.max.bytes": 8 * FETCH_BYTES,
        "queued.max.messages.kbytes": QUEUED_KBYTES,
        "fetch.queue.backoff.ms": QUEUE_FULL_WAIT_MS,
        # Kafka Connect's; the reader itself goes there and says so.
        "auto.offset.reset": "earliest",
        # The Java client's; librdkafka's own is read_committed.
        "isolation.level": "read_uncommitted",
        "group.id": f"connect-{connector}",
        **client.values,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
    }
    # fetch.max.bytes must not be less than what one partition may return.
    values["fetch.max.bytes"] = max(_number(values, "fetch.max.bytes"), _number(values, "fetch.message.max.bytes"))
    return replace(client, values=values)


def writer_config(
    connector: str,
    task: int,
    config: Mapping[str, str],
    worker_config: Mapping[str, str],
    *,
    client_name: str = "connector-producer",
) -> ClientConfig:
    """Settings of a source task's producer, or with another client name of a dead letter queue's."""
    named = {"client.id": f"{client_name}-{connector}-{task}"}
    client = resolve("producer", worker=worker_config, connector=config, defaults=named)
    values: dict[str, ClientValue] = {
        "acks": "all",
        "enable.idempotence": _acks_all(client.values),
        "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
        "linger.ms": 5,
        # The Java client's max.request.size.
        "message.max.bytes": 1_048_576,
        "queue.buffering.max.kbytes": PRODUCER_QUEUE_KBYTES,
        "queue.buffering.max.messages": PRODUCER_QUEUE_MESSAGES,
        # The Java client's: the same key goes to the same partition as before.
        "partitioner": "murmur2_random",
        **client.values,
        # Only failures are told one by one; success is what flush says.
        "delivery.report.only.error": True,
    }
    # The queue must take the largest record and one more; otherwise that record waits for room for ever.
    room = 2 * _number(values, "message.max.bytes") // 1024
    values["queue.buffering.max.kbytes"] = max(_number(values, "queue.buffering.max.kbytes"), room)
    return replace(client, values=values)


def transactional_config(
    connector: str,
    task: int,
    config: Mapping[str, str],
    worker_config: Mapping[str, str],
    transactional_id: str,
    interval_ms: int,
) -> ClientConfig:
    """Settings of an exactly-once source task's producer: what transactions demand wins over any override."""
    client = writer_config(connector, task, config, worker_config)
    demanded: dict[str, ClientValue] = {"acks": "all", "enable.idempotence": True, "transactional.id": transactional_id}
    # A transaction of the length asked for must not be timed out by the broker.
    room: dict[str, ClientValue] = {"transaction.timeout.ms": min(TRANSACTION_MS + interval_ms, TRANSACTION_MS_MAX)}
    values = {**room, **client.values, **demanded}
    if str(values.get("retries", "1")) == "0":
        del values["retries"]
    in_flight = "max.in.flight.requests.per.connection"
    if in_flight in values and _number(values, in_flight) > IN_FLIGHT_MAX:
        del values[in_flight]
    # librdkafka demands that no record outlives its transaction.
    values["delivery.timeout.ms"] = min(
        _number(values, "delivery.timeout.ms"), _number(values, "transaction.timeout.ms")
    )
    return ClientConfig(values, client.ignored)


def offsets_consumer_config(
    connector: str, task: int, config: Mapping[str, str], worker_config: Mapping[str, str], producer: ClientConfig
) -> ClientConfig:
    """Settings of the consumer that reads an exactly-once source's offsets, where its producer writes them."""
    named = {"client.id": f"connector-offsets-consumer-{connector}-{task}"}
    client = resolve("consumer", worker=worker_config, connector=config, defaults=named)
    return ClientConfig({**client.values, "bootstrap.servers": producer.values["bootstrap.servers"]}, client.ignored)


def admin_config(
    connector: str, task: int, config: Mapping[str, str], worker_config: Mapping[str, str]
) -> ClientConfig:
    """Settings of the admin client that creates topics; inherits the worker's own, as Kafka Connect's does."""
    named = {"client.id": f"connector-adminclient-{connector}-{task}"}
    return resolve("admin", worker=worker_config, connector=config, defaults=named)


def _acks_all(values: Mapping[str, ClientValue]) -> bool:
    """Idempotence is on unless a setting contradicts it; librdkafka refuses the pair otherwise."""
    acks = str(values.get("acks", "all"))
    key = "max.in.flight.requests.per.connection"
    in_flight = _number({key: IN_FLIGHT_MAX, **values}, key)
    return acks in {"all", "-1"} and in_flight <= IN_FLIGHT_MAX and str(values.get("retries", "1")) != "0"


def _number(values: Mapping[str, ClientValue], key: str) -> int:
    try:
        return int(values[key])
    except ValueError:
        raise ConfigError(
            f"Invalid value {values[key]} for configuration {key}: Not a number of type INT", key=key
        ) from None
