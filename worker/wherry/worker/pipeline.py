"""Makes a lease's pipeline from its grant: reader, steps, writer and tolerance.

The writer is opened first: a destination that stores positions with its data says where to go on, and its word wins
over the coordinator's. Clients and channels are made here and nowhere earlier, because workers are forked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from wherry.contract import from_proto
from wherry.contract.batch import Batch
from wherry.contract.client import SidecarClient
from wherry.contract.description import Role
from wherry.contract.errors import ConfigError, ConnectorBugError
from wherry.contract.kafka_clients import ClientConfig
from wherry.contract.mirror import Policy
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.contract.topic_creation import TopicRules
from wherry.control.v1 import lease_pb2
from wherry.worker import native
from wherry.worker.boundaries import Boundaries, Boundary
from wherry.worker.convert.plain import ByteArrayConverter
from wherry.worker.convert.registry import converters_of
from wherry.worker.convert.step import FromConnect, Stage, Step, ToConnect, WriteHeaders
from wherry.worker.convert.typed import TypedValues
from wherry.worker.counts import Counts
from wherry.worker.endpoints import Reader, Writer
from wherry.worker.endpoints.aligned import AlignedReader
from wherry.worker.endpoints.kafka_config import (
    admin_config,
    mirror_config,
    offsets_consumer_config,
    reader_config,
    transactional_config,
    writer_config,
)
from wherry.worker.endpoints.kafka_reader import KafkaReader
from wherry.worker.endpoints.kafka_writer import KafkaWriter
from wherry.worker.endpoints.mirror import MirrorReader, MirrorWriter, OffsetSyncs, SyncRule
from wherry.worker.endpoints.sidecar_reader import Lookup, SidecarReader, position_lookup
from wherry.worker.endpoints.sidecar_writer import SidecarWriter
from wherry.worker.endpoints.topics import TopicCreator, offsets_topic_rules
from wherry.worker.endpoints.transactional_writer import TransactionalWriter
from wherry.worker.policy import RetryPolicy
from wherry.worker.signals import Assignment
from wherry.worker.tolerance import QUEUE_KEYS, ErrorRules, Giving, Tolerance
from wherry.worker.transform.base import Transform
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.sidecar import SidecarTransform
from wherry.worker.transform.step import Transforms

logger: Final = logging.getLogger("wherry.worker.pipeline")


class PipelineKind(enum.IntEnum):
    """What a lease moves; the numbers are those of the wire's PipelineKind."""

    SOURCE = 1
    SINK = 2
    DIRECT = 3
    MIRROR = 4


class Transacting(Protocol):
    """What a transactional writer does beyond writing."""

    def stage(self, positions: Sequence[Position]) -> None:
        """Names the positions that the next flush stores with the rows."""

    def abort(self) -> None:
        """Rolls back what was written since the last flush."""

    @property
    def behind(self) -> bool:
        """Whether so many rows are still on their way that a flush would have to wait for them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Transactions:
    """How rows and positions are written in one transaction."""

    boundaries: Boundaries
    writer: Transacting


@dataclasses.dataclass(slots=True)
class Pipeline:
    """Everything the pump works with.

    Attributes:
        reader: Where batches come from.
        writer: Where they go.
        steps: What is done to them in between.
        tolerance: What is done with rows that fail.
        connector_class: Class of the connector, for reports of failures.
        write_stage: Stage that a row refused by the writer failed in.
        retry: How long a step is tried again.
        positions: The durable positions, kept by the pump; a new pipeline goes on from here.
        work: The task or split being read; None for a sink.
        split: Whether it is a split, and others may follow.
        settles: Whether the source wants to know what was committed, also at the end.
        opener: Opens the reader of the next split.
        transactions: Set where rows and positions are written in one transaction.
        closers: What `close` calls besides.
    """

    reader: Reader
    writer: Writer
    steps: tuple[Step, ...]
    tolerance: Giving
    connector_class: str = ""
    write_stage: Stage = Stage.TASK_PUT
    retry: RetryPolicy = dataclasses.field(default_factory=RetryPolicy)
    positions: dict[str, Position] = dataclasses.field(default_factory=dict)
    work: Work | None = None
    split: bool = False
    settles: bool = False
    opener: Callable[[Work, Sequence[Position]], Reader] | None = None
    closers: tuple[Callable[[], None], ...] = ()
    transactions: Transactions | None = None

    def open_split(self, assignment: Assignment) -> None:
        """Goes on with another split."""
        if self.opener is None or assignment.work is None:
            raise ConnectorBugError("A split was assigned to a lease that reads none.")
        self.reader.close()
        for position in assignment.positions:
            self.positions[position.partition] = position
        self.reader = self.opener(assignment.work, assignment.positions)
        self.work = assignment.work

    def latency(self, batch: Batch, counts: Counts) -> None:
        """Counts how old the newest record of a batch is."""
        timestamps = batch.stored("timestamp")
        if timestamps is None or not batch.num_rows:
            return
        newest = timestamps[-1].value
        if newest is not None:
            counts.latency(int(time.time() * 1000) - newest, batch.num_rows)

    def close(self) -> None:
        """Releases everything; harmless when repeated."""
        for close in (self.reader.close, self.writer.close, *self.closers):
            with contextlib.suppress(Exception):
                close()


def build(
    grant: lease_pb2.OpenLeaseResponse,
    sidecars: Mapping[Role, str],
    *,
    positions: Mapping[str, Position] | None = None,
    lookup: Lookup | None = None,
    work: Work | None = None,
    transforms: Mapping[str, str] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    confirm: Callable[[], None] = lambda: None,
) -> Pipeline:
    """Makes the pipeline of a lease.

    Args:
        grant: The answer to OpenLease.
        sidecars: Endpoints of the sidecars by role, as the host gave them.
        positions: Positions that became durable under this lease, after a pipeline has failed; they win over the
            grant's.
        lookup: Answers a source's question for stored positions; by default from the positions known here.
        work: The split that was being read when a pipeline failed; by default the grant's work.
        transforms: Endpoints of the transformations' sidecars, by alias.
        interrupted: Whether there is no use in waiting for a transformation any longer.
        confirm: Raises WherryError unless the lease is in force.

    Raises:
        WherryError: Its class says what is to be done.
    """
    native.switch(grant.worker_config.get(native.SETTING, "true").strip().lower() != "false")
    builder = _Builder(grant, sidecars, positions or {}, lookup, work, confirm)
    builder.use_transforms(transforms or {}, interrupted)
    return builder.build()


class _Builder:
    def __init__(
        self,
        grant: lease_pb2.OpenLeaseResponse,
        sidecars: Mapping[Role, str],
        positions: Mapping[str, Position],
        lookup: Lookup | None,
        work: Work | None,
        confirm: Callable[[], None],
    ) -> None:
        self._confirm = confirm
        self._kind = from_proto.known(PipelineKind, grant.kind, None)
        self._grant = grant
        self._sidecars = sidecars
        self._config = dict(grant.config)
        self._worker = dict(grant.worker_config)
        self._connector = self._config.get("name") or (grant.sidecars[0].connector if grant.sidecars else "")
        self._specs = {Role(spec.role): spec for spec in grant.sidecars if not spec.alias}
        self._transforms: dict[str, Transform] = {}
        self._positions = {position.partition: position for position in from_proto.positions(grant.positions)}
        self._positions.update(positions)
        self._lookup = lookup or position_lookup(self._positions)
        self._work = work or from_proto.work(grant.work)
        self._clients: dict[Role, SidecarClient] = {}
        self._transactions: Transactions | None = None
        self._sink = self._kind in {PipelineKind.SINK, PipelineKind.DIRECT}
        # A direct pipeline is both, and may name its queue by the keys of either.
        queue_of_sink = self._kind is PipelineKind.DIRECT and f"{QUEUE_KEYS}topic.name" in self._config
        self._rules = ErrorRules.of(self._config, sink=self._kind is PipelineKind.SINK or queue_of_sink)

    def use_transforms(self, endpoints: Mapping[str, str], interrupted: Callable[[], bool]) -> None:
        """Takes the transformations that run in sidecars; they connect when the first batch comes."""
        for spec in self._grant.sidecars:
            if spec.alias and spec.alias in endpoints:
                prefix = f"transforms.{spec.alias}."
                own = {key.removeprefix(prefix): text for key, text in self._config.items() if key.startswith(prefix)}
                self._transforms[spec.alias] = SidecarTransform(
                    endpoints[spec.alias],
                    spec.class_name,
                    own,
                    generation=spec.generation,
                    task=self._grant.task,
                    interrupted=interrupted,
                )

    def build(self) -> Pipeline:
        if self._kind is None:
            raise ConnectorBugError(f"The lease is of kind {self._grant.kind}, which this worker doesn't know.")
        with contextlib.ExitStack() as undo:
            undo.callback(self._close_clients)
            tolerance = Tolerance(self._rules, self._connector, self._grant.task, self._dead_letters())
            undo.callback(tolerance.close)
            writer = self._sidecar_writer() if self._sink else self._kafka_writer()
            undo.callback(writer.close)
            for position in writer.stored:
                # What the destination stores with its data wins.
                self._positions[position.partition] = position
            steps = self._steps()
            reader = self._reader()
            undo.pop_all()
        from_sidecar = self._kind in {PipelineKind.SOURCE, PipelineKind.DIRECT}
        spec = self._specs.get(Role.SINK if self._sink else Role.SOURCE)
        return Pipeline(
            reader=reader,
            writer=writer,
            steps=steps,
            tolerance=tolerance,
            connector_class=spec.class_name if spec else "",
            write_stage=Stage.TASK_PUT if self._sink else Stage.KAFKA_PRODUCE,
            retry=self._rules.retry,
            positions=self._positions,
            work=self._work if from_sidecar else None,
            split=self._grant.split,
            settles=from_sidecar,
            opener=self._sidecar_reader if from_sidecar else None,
            closers=(
                *(step.close for step in steps if isinstance(step, Transforms)),
                tolerance.close,
                self._close_clients,
            ),
            transactions=self._transactions,
        )

    def _reader(self) -> Reader:
        if self._kind in {PipelineKind.SOURCE, PipelineKind.DIRECT}:
            wanted = self._work.partitions
            known = [self._positions[name] for name in wanted if name in self._positions]
            return self._sidecar_reader(self._work, known if wanted else list(self._positions.values()))
        if self._kind is PipelineKind.MIRROR:
            return self._mirror_reader()
        client = reader_config(self._connector, self._grant.task, self._config, self._worker)
        _warn(client, "consumer", self._connector)
        partitions = self._grant.partitions_json
        return KafkaReader(client, [self._positions.get(name) or Position(name, None) for name in partitions])

    def _steps(self) -> tuple[Step, ...]:
        if self._kind is PipelineKind.SINK and self._specs[Role.SINK].raw:
            return ()  # it converts by itself, and the coordinator lets no transformation through
        links = chain_of(self._config, is_sink=self._kind is PipelineKind.SINK, served=self._transforms)
        transforms: tuple[Step, ...] = (Transforms(links),) if links else ()
        if self._kind is PipelineKind.MIRROR:
            return self._mirror_steps(transforms)
        if self._kind is PipelineKind.SOURCE:
            return (*transforms, FromConnect(converters_of(self._config, self._worker)))
        if self._kind is PipelineKind.DIRECT:
            # Headers that transforms have added are the header converter's here too; a sidecar takes bytes.
            written = (WriteHeaders(converters_of(self._config, self._worker)),) if transforms else ()
            return (*transforms, *written, *self._typed_values())
        if self._kind is not PipelineKind.SINK:
            return ()
        converters = converters_of(self._config, self._worker)
        return (ToConnect(converters), *transforms, WriteHeaders(converters), *self._typed_values())

    def _mirror_steps(self, transforms: tuple[Step, ...]) -> tuple[Step, ...]:
        """None without transforms: records are bytes. To them keys and values are bytes, headers as they are."""
        if not transforms:
            return ()
        plain = {"key.converter": ByteArrayConverter.class_name, "value.converter": ByteArrayConverter.class_name}
        converters = converters_of({**self._config, **plain}, self._worker)
        sides = converters_of({**plain, "header.converter": ByteArrayConverter.class_name}, {})
        # Headers that transforms have added are the header converter's; those that were there stay bytes.
        return (ToConnect(sides), *transforms, WriteHeaders(converters, for_sink=False), FromConnect(sides))

    def _typed_values(self) -> tuple[Step, ...]:
        spec = self._specs[Role.SINK]
        if not spec.typed:
            return ()
        client = self._client(Role.SINK)
        return (TypedValues(lambda topic, schema: client.ensure_target(topic, schema).schema, spec.class_name),)

    def _sidecar_reader(self, work: Work, positions: Sequence[Position]) -> Reader:
        reader = SidecarReader(
            self._client(Role.SOURCE),
            work,
            positions,
            generation=self._specs[Role.SOURCE].generation,
            task=self._grant.task,
            split=self._grant.split,
            lookup=self._lookup,
        )
        # A sink that stores positions with the rows must get no rows without theirs.
        return AlignedReader(reader) if self._kind is PipelineKind.DIRECT else reader

    def _sidecar_writer(self) -> Writer:
        return SidecarWriter(
            self._client(Role.SINK),
            self._connector,
            generation=self._specs[Role.SINK].generation,
            task=self._grant.task,
            # The sink of a direct pipeline tells the source's positions that it stores.
            partitions=self._work.partitions if self._kind is PipelineKind.DIRECT else self._grant.partitions_json,
            keep_raw=self._rules.keeps_rows,
        )

    def _mirror_reader(self) -> Reader:
        client = mirror_config(self._connector, self._grant.task, self._config, "source", "consumer")
        _warn(client, "source consumer", self._connector)
        wanted = self._work.partitions
        positions = [self._positions.get(name) or Position(name, None) for name in wanted]
        return MirrorReader(client, self._config.get("source.cluster.alias", ""), Policy.of(self._config), positions)

    def _mirror_writer(self, client: ClientConfig, *, at_flush: bool = False) -> MirrorWriter:
        alias, policy = self._config.get("source.cluster.alias", ""), Policy.of(self._config)
        topics = {str(Position(name, None).partition_map.get("topic", "")) for name in self._work.partitions}
        syncs = None
        if self._config.get("emit.offset-syncs.enabled", "true").strip().lower() != "false":
            near = self._config.get("offset-syncs.topic.location", "source").strip().lower()
            other = self._config.get("target.cluster.alias", "target") if near == "source" else alias
            producer = mirror_config(self._connector, self._grant.task, self._config, near, "producer")
            syncs = OffsetSyncs(producer, policy.offset_syncs(other))
        rule = SyncRule(int(self._config.get("offset.lag.max", "100")))
        origins = {policy.remote(alias, topic): topic for topic in topics}
        creator = self._creator(TopicRules.of(self._config, self._worker))
        return MirrorWriter(client, origins, rule, syncs, creator=creator, at_flush=at_flush)

    def _kafka_writer(self) -> Writer:
        if self._grant.HasField("exactly_once"):
            return self._transactional_writer(self._grant.exactly_once)
        client = writer_config(self._connector, self._grant.task, self._config, self._worker)
        _warn(client, "producer", self._connector)
        if self._kind is PipelineKind.MIRROR:
            return self._mirror_writer(client)
        rules = TopicRules.of(self._config, self._worker)
        return KafkaWriter(client, creator=self._creator(rules))

    def _transactional_writer(self, wanted: lease_pb2.ExactlyOnce) -> Writer:
        boundary = from_proto.known(Boundary, wanted.boundary, None)
        if boundary is None:
            raise ConnectorBugError(f"The lease asks for a transaction boundary {wanted.boundary}, which is unknown.")
        task = (self._connector, self._grant.task, self._config, self._worker)
        client = transactional_config(*task, wanted.transactional_id, wanted.interval_ms)
        _warn(client, "producer", self._connector)
        shared = wanted.offsets_topic == self._worker.get("offset.storage.topic") and (
            client.values["bootstrap.servers"] == self._worker.get("bootstrap.servers")
        )
        writer = TransactionalWriter(
            client,
            offsets_consumer_config(*task, client).values,
            self._connector,
            wanted.offsets_topic,
            creator=self._creator(TopicRules.of(self._config, self._worker)),
            # The worker's own topic was made by the coordinator.
            offsets_creator=None if shared else self._creator(offsets_topic_rules(self._worker)),
            make=partial(self._mirror_writer, at_flush=True) if self._kind is PipelineKind.MIRROR else None,
            confirm=self._confirm,
        )
        self._transactions = Transactions(Boundaries(boundary, wanted.interval_ms / 1000), writer)
        # All stored positions are known here, and they are the truth; the coordinator's may be older.
        self._lookup = position_lookup(self._positions)
        return writer

    def _creator(self, rules: TopicRules | None) -> TopicCreator | None:
        if rules is None:
            return None
        return TopicCreator(rules, admin_config(self._connector, self._grant.task, self._config, self._worker))

    def _dead_letters(self) -> Writer | None:
        if not self._rules.dead_letter_topic:
            return None
        client = writer_config(
            self._connector, self._grant.task, self._config, self._worker, client_name="connector-dlq-producer"
        )
        # Kafka Connect makes the topic with one partition.
        rule = {"partitions": "1", "replication.factor": str(self._rules.dead_letter_replication)}
        return KafkaWriter(client, creator=self._creator(TopicRules((("default", rule),))))

    def _client(self, role: Role) -> SidecarClient:
        endpoint = self._sidecars.get(role)
        if endpoint is None or role not in self._specs:
            raise ConfigError(f"The lease of {self._connector} has no {role.name.lower()} sidecar.")
        if role not in self._clients:
            self._clients[role] = SidecarClient(endpoint)
        return self._clients[role]

    def _close_clients(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()


def _warn(client: ClientConfig, kind: str, connector: str) -> None:
    for warning in client.warnings():
        logger.warning("Connector %s, %s: %s.", connector, kind, warning)
