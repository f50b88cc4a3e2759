"""The herder of a coordinator that is one of several: leads, or answers what it can from the topics and waits.

Adds to `herder.py` what begins and ends with leading. Without the lead nothing of it runs but, when it is to be warm,
Spark; statuses, configurations and offsets are answered all the same.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

from wherry.coordinator import api
from wherry.coordinator import events as ev
from wherry.coordinator.herder import StandardHerder
from wherry.coordinator.store import StoredStatus
from wherry.coordinator.store.configlog import SessionKey
from wherry.coordinator.store.kafka import KafkaConfigStore, KafkaStores

log = logging.getLogger(__name__)

SESSION_KEY_BYTES: Final = 32
_ALGORITHM: Final = "HmacSHA256"


class ClusterHerder(StandardHerder):
    """A herder whose connectors begin with `lead` and end with `depose`."""

    _ready: Callable[[], bool] = staticmethod(lambda: False)
    _spark_lock = threading.Lock()
    _spark_started = False

    def await_lead(self, ready: Callable[[], bool], *, warm: bool) -> None:
        """Start all parts, with Spark if it is to be warm, and wait for the lead.

        Args:
            ready: Whether the topics have been read and the group has taken us in.
            warm: Whether Spark starts now or with the lead.
        """
        self._ready = ready
        self.start_parts()
        if warm:
            self._start_spark()

    def watch_secrets(self) -> None:
        """Restart connectors whose secrets change, from now on."""
        self._reloader.start()

    def lead(self) -> None:
        """Take up all connectors, above every generation there was."""
        self._start_spark()
        self._runner.post(ev.LeadershipGiven(int(time.time())))
        self.take_up()

    def depose(self) -> None:
        """Drop all leases as they are: another one has begun its own."""
        self._runner.post(ev.LeadershipLost())

    def internal_verifier(self) -> api.InternalVerifier | None:
        """The session key of the config topic, and the algorithms this worker takes."""
        configs = self._stores.configs
        algorithms = tuple(self._worker.parsed["inter.worker.verification.algorithms"])
        key = configs.session_key() if self._ready() and isinstance(configs, KafkaConfigStore) else None
        return api.InternalVerifier(None if key is None else key.key, algorithms)

    def health(self) -> api.Health:
        """As of a single worker, but ready only when the topics are read; whoever does not lead needs no Spark."""
        if not self._ready():
            return api.Health("starting", "Worker is still starting up. Its topics in Kafka are being read.")
        if not self._spark_started:
            return api.Health("healthy", "Worker has completed startup and is ready to handle requests.")
        return super().health()

    def _start_spark(self) -> None:
        with self._spark_lock:
            if not self._spark_started:
                self._spark_started = True
                self._hands.spark.start()


def tidy(stores: KafkaStores, worker_id: str, now_ms: int, key_ttl_ms: int) -> None:
    """What a new leader puts in order: states of what is gone or rests, and a session key that is not too old."""
    connectors = stores.configs.snapshot().connectors
    stores.statuses.forget_surplus({name: len(stored.tasks) for name, stored in connectors.items()})
    for name, stored in connectors.items():
        if stored.target_state is api.TargetState.PAUSED:
            # A paused connector is not planned, so that nothing else tells of its tasks: the last worker has said
            # UNASSIGNED of them when it ended.
            for number in range(len(stored.tasks)):
                stores.statuses.put(StoredStatus(name, number, api.State.PAUSED, worker_id))
    renew_key(stores, now_ms, key_ttl_ms)


def renew_key(stores: KafkaStores, now_ms: int, key_ttl_ms: int) -> None:
    """Write a new session key when there is none or it is too old."""
    key = stores.configs.session_key()
    if key is None or now_ms - key.created_ms >= key_ttl_ms:
        stores.configs.put_session_key(SessionKey(secrets.token_bytes(SESSION_KEY_BYTES), _ALGORITHM, now_ms))
