"""What the coordinator asks of Kafka, after the broker has been away."""

from __future__ import annotations

from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

from wherry.contract.errors import WherryError
from wherry.contract.position import TopicPartition
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.kafka import KafkaAdmin

RECORDS = 5


def test_end_offsets_are_known_again_after_the_broker_was_killed(own_kafka: EmbeddedKafka) -> None:
    """librdkafka's admin client goes by the leaders it knew; what is parked would never wake again."""
    topic = create_topic(own_kafka.bootstrap, "watched")
    produce(own_kafka.bootstrap, topic, [b"x"] * RECORDS)
    partition = TopicPartition(topic, 0)
    admin = KafkaAdmin({"bootstrap.servers": own_kafka.bootstrap})
    assert admin.end_offsets([partition]) == {partition: RECORDS}
    own_kafka.kill()
    own_kafka.start()

    def known() -> bool:
        try:
            return admin.end_offsets([partition]) == {partition: RECORDS}
        except WherryError:
            return False

    assert eventually(known, 20.0)
