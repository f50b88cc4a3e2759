"""The datagen source: made-up records at any rate, going on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from wherry.contract.errors import ConfigError
from wherry.sdk import Batch, Config, Mark, Offsets, Plan, Source, Task, Work, key
from wherry_datagen.generators import BLOCK_ROWS, Records, block
from wherry_datagen.schemas import NAMED, described, named

TASK = "task"
COUNT = "count"
TICK_S = 0.05


class DatagenConfig(Config):
    """Keys of this connector, with those of Confluent's as other spellings."""

    topic: str = key(doc="Topic to write to.", importance="high", aliases=("kafka.topic",), non_empty=True)
    schema: str = key(
        default="orders",
        doc="Name of a schema that comes with the connector.",
        importance="high",
        aliases=("quickstart",),
        recommended=tuple(NAMED),
    )
    schema_string: str | None = key(
        default=None, doc="Description of a schema: an Avro record, or a JSON object with fields. Wins over schema."
    )
    schema_filename: str | None = key(default=None, doc="File that holds such a description.")
    key_field: str | None = key(
        default=None, doc="Field of the value that becomes the key.", aliases=("schema.keyfield",)
    )
    rate: float = key(default=0.0, doc="Records a second and task; 0 doesn't limit.", min=0)
    max_interval: int = key(
        default=0, type="long", doc="Longest time between records in ms, the older way to limit a rate.", min=0
    )
    count: int = key(default=0, type="long", doc="Records to make in all, spread over the tasks; 0 never ends.", min=0)
    iterations: int = key(default=-1, type="long", doc="Records to make in each task; -1 never ends.", min=-1)
    seed: int = key(
        default=0,
        type="long",
        doc="Chooses the values: the same seed gives the same records.",
        min=0,
        aliases=("random.seed",),
    )


class DatagenSource(Source[DatagenConfig]):
    """Makes records up, the same ones for the same seed, at any rate."""

    class_name = "wherry.datagen.DatagenSource"
    aliases: ClassVar[Sequence[str]] = ("DatagenSource", "Datagen")
    parkable = False

    @classmethod
    def validate(cls, config: DatagenConfig, connect: bool) -> Mapping[str, str]:
        """The schema must be one that can be made, and have the key's field."""
        try:
            record = _record(config)
        except ConfigError as error:
            return {error.key or "schema": str(error)}
        if config.key_field and config.key_field not in record.fields:
            return {"key.field": f"The schema has no field {config.key_field}; it has {', '.join(record.fields)}."}
        return {}

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """As many tasks as are allowed, each with its share."""
        total = self.config.count
        shares = [total // max_tasks + (i < total % max_tasks) for i in range(max_tasks)]
        tasks = [
            Task(data={"share": share}, config={"task.id": str(i)}, partitions=[{TASK: i}])
            for i, share in enumerate(shares)
            if share or not total
        ]
        return Plan(tasks=tasks)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch]:
        """Makes blocks from the stored count on."""
        config, task = self.config, int(work.id)
        record = _record(config)
        made = int((offsets.get({TASK: task}) or {}).get(COUNT, 0))
        end = _smallest(work.data["share"] or None, None if config.iterations < 0 else config.iterations)
        rate = config.rate or (1_000 / config.max_interval if config.max_interval else 0.0)
        pace = Pace(rate)
        while not self.stopping and (end is None or made < end):
            rows = block(record, config.seed, task, made // BLOCK_ROWS)
            start = made % BLOCK_ROWS
            count = min(BLOCK_ROWS - start, BLOCK_ROWS if end is None else end - made)
            while count and not self.stopping:
                now = pace.allowed(count)
                if not now:
                    self.wait(TICK_S if rate > 1 / TICK_S else 1 / (2 * rate))
                    continue
                yield self._batch(rows.slice(start, now), task, made + now)
                made, start, count = made + now, start + now, count - now

    def _batch(self, rows: pa.StructArray, task: int, made: int) -> Batch:
        name = self.config.key_field
        chosen = rows.flatten()[rows.type.get_field_index(name)] if name else None
        marks = [Mark(len(rows), {TASK: task}, {COUNT: made})]
        return Batch(value=rows, key=chosen, topic=self.config.topic, marks=marks)


class ConfluentDatagenSource(DatagenSource):
    """The same under Confluent's class name."""

    class_name = "io.confluent.kafka.connect.datagen.DatagenConnector"
    aliases = ("DatagenConnector",)


class Pace:
    """How many rows may go now so that a rate is kept; a pause isn't made up for by more than a second's rows."""

    def __init__(self, rate: float) -> None:
        """A pace of so many rows a second; 0 doesn't limit."""
        self._rate = rate
        self._at = time.monotonic()
        self._saved = 1.0

    def allowed(self, wanted: int) -> int:
        """Rows that may go now, at most those wanted."""
        if not self._rate:
            return wanted
        now = time.monotonic()
        self._saved = min(self._saved + (now - self._at) * self._rate, max(1.0, self._rate))
        self._at = now
        granted = min(wanted, int(self._saved))
        self._saved -= granted
        return granted


def _record(config: DatagenConfig) -> Records:
    if config.schema_string:
        return described(config.schema_string)
    if config.schema_filename:
        try:
            return described(Path(config.schema_filename).read_text())
        except OSError as error:
            raise ConfigError(
                f"Invalid value {config.schema_filename} for configuration schema.filename: {error.strerror}",
                key="schema.filename",
            ) from None
    return named(config.schema)


def _smallest(*limits: Any) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None
