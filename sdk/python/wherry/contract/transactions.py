"""Opens a producer's transactions without the half second that the client library may take to look around.

It asks for the transaction coordinator at once; when no broker is connected by then, it asks again half a second later.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

# As long as the library would wait by itself: longer would gain nothing.
CONNECT_WAIT_S: Final = 0.5
# The first answer may come by a connection that the library closes on it, for one to the broker by its number.
CONNECTIONS: Final = 2


def init_transactions(producer: Any, timeout_s: float, topic: str = "") -> None:
    """Shuts out earlier producers of the same transactional id, as `Producer.init_transactions` does.

    Args:
        producer: A client with a transactional.id.
        timeout_s: How long the broker may take.
        topic: One that exists there (brokers may make one that is asked for): asking for it tells when a broker is
            connected, without news of all topics. Empty if none is known, which may cost the half second.

    Raises:
        KafkaException: It could not be done, or not in time; `retriable` says whether it may be tried again.
    """
    from confluent_kafka import KafkaException

    with contextlib.suppress(KafkaException):  # whatever it is, what follows tells it better
        for _ in range(CONNECTIONS if topic else 0):
            producer.list_topics(topic, timeout=min(CONNECT_WAIT_S, timeout_s))
    producer.init_transactions(timeout_s)
