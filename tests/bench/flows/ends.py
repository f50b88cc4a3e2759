"""The end offsets of a topic: how many records have arrived, as a reader of committed records sees it."""

from __future__ import annotations

from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from tests.bench import load
from tests.bench.processes import BenchError

CALL_SECONDS = 10.0


class Ends:
    """Asks for the ends of a topic's partitions. A context manager."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._partitions = [TopicPartition(topic, partition) for partition in range(partitions)]
        self._reader = Consumer(
            {
                **load.CLIENT,
                "bootstrap.servers": bootstrap,
                "group.id": "bench-watch",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def total(self) -> int:
        """The sum of the end offsets; 0 while the topic is not there."""
        return sum(self._end(partition) for partition in self._partitions)

    def _end(self, partition: TopicPartition) -> int:
        try:
            found = self._reader.get_watermark_offsets(partition, timeout=CALL_SECONDS, cached=False)
        except KafkaException:
            return 0
        if found is None:
            raise BenchError(f"The broker did not tell the end of {partition.topic} within {CALL_SECONDS:.0f} s.")
        return max(0, int(found[1]))

    @staticmethod
    def beginning(topic: str, partition: int) -> TopicPartition:
        """What to assign to read a partition from its beginning."""
        return TopicPartition(topic, partition, OFFSET_BEGINNING)
