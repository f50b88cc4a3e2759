"""A coordinator's place in its Kafka consumer group: joins it, tells who leads, and carries out what membership wants.

The group is the worker's `group.id`, that of a Kafka Connect cluster too: the broker lets nobody join with another kind
of members, so that Wherry and Kafka Connect never run the same connectors at once. A member's client id tells where its
REST API is. One thread polls; claims and questions, which take time, run in another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from wherry.contract.errors import AuthError, ConfigError, FencedError, TransientError, WherryError
from wherry.contract.position import TopicPartition
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.membership import Effect, Input, Membership, Phase, due, step

log = logging.getLogger(__name__)

POLL_S: Final = 0.2
HEARTBEAT_MS: Final = 500
"""A standby hears only by its heartbeats that the leader is gone."""
CLAIM_RETRY_S: Final = 1.0
ASK_RETRY_S: Final = 0.2
"""While the group decides who leads."""
REFUSED_AFTER_S: Final = 15.0
"""Members of a Kafka Connect cluster that was killed stay in the group for their session time-out, mostly 10 s."""
LEADER_CACHE_S: Final = 1.0
LEADER_FRESH_S: Final = 0.2
"""What was told of the leader just now is not asked anew, however many have found it dead."""
LEAVE_TIMEOUT_S: Final = 2.0
DOUBT_S_MAX: Final = 10.0
DOUBT_POLL_S: Final = 0.05
_ASKING: Final = frozenset({Phase.LEADING, Phase.DOUBTING})
_CLIENT_PREFIX: Final = "wherry-"
_METADATA_MARK: Final = b"CGMDv2:"
_GENERATION_BYTES: Final = 4


class Leading(Protocol):
    """What leading means; called by one thread at a time."""

    def claim(self) -> None:
        """Fence the forerunner, and read what it has written."""

    def lead(self) -> None:
        """Take up all connectors."""

    def depose(self) -> None:
        """Drop all work at once, without committing anything. May be called while `lead` is under way."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group and how to be in it.

    Attributes:
        client: Connection settings of librdkafka.
        group: The worker's group.id.
        topic: The config topic.
        url: Where this coordinator's REST API is.
        session_ms: How long a member may be silent before the partition goes to another one.
    """

    client: Mapping[str, Any]
    group: str
    topic: str
    url: str
    session_ms: int


class Leadership:
    """A member of the group.

    Args:
        settings: The group.
        admin: Tells who has the partition.
        leading: What to do when it is ours, and when it no longer is.
        failed: Told of what makes it impossible to go on.
    """

    def __init__(
        self, settings: GroupSettings, admin: KafkaAdmin, leading: Leading, failed: Callable[[Exception], None]
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._leading = leading
        self._failed = failed
        self._partition = TopicPartition(settings.topic, 0)
        self._lock = threading.RLock()
        self._membership = Membership()
        self._generation = 0
        self._member = ""
        self._beat_s = time.monotonic()
        self._held_s: float | None = None
        """Since Kafka was away for long and until the group decides anew: when our old place was last seen there."""
        self._refused_since_s: float | None = None
        self._told = ""
        self._rejoin = False
        self._leader: tuple[float, str | None] = (0.0, None)
        self._asking = threading.Lock()
        self._closing = threading.Event()
        self._left = threading.Event()
        self._consumer: Any = None
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="leadership")
        # Questions don't wait for connectors to be taken up: a doubt is to be short.
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="leadership-asks")
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self.joined = threading.Event()

    def start(self) -> None:
        """Join the group; returns at once."""
        self._thread.start()

    def leave(self) -> None:
        """Leave the group, so that another one leads at once. The work must have ended before."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread.is_alive():
            self._left.wait(LEAVE_TIMEOUT_S)
        for pool in (self._aside, self._questions):
            pool.shutdown(wait=False, cancel_futures=True)

    @property
    def may_write(self) -> bool:
        """Whether this coordinator leads without a doubt."""
        return self._membership.may_write and self._due() is None

    def may_write_soon(self) -> bool:
        """As `may_write`, but patient while that is in doubt: a busy machine is no reason to lose a state."""
        deadline = time.monotonic() + DOUBT_S_MAX
        while not self.may_write:
            phase = self._membership.phase
            doubtful = phase is Phase.DOUBTING or phase is Phase.LEADING
            if not doubtful or self._closing.is_set() or time.monotonic() > deadline:
                return False
            time.sleep(DOUBT_POLL_S)
        return True

    @property
    def leads(self) -> bool:
        """Whether requests are for this coordinator."""
        return self._membership.may_write

    @property
    def generation(self) -> int:
        """The group's generation, which rises whenever its members change."""
        return self._generation

    def leader_url(self) -> str | None:
        """Where the REST API of the leader is; None while nobody leads.

        Raises:
            WherryError: Kafka does not answer.
        """
        if self.leads:
            return self._settings.url
        with self._asking:  # whoever waits for it takes what another one has been told
            asked_s, url = self._leader
            if time.monotonic() - asked_s > LEADER_CACHE_S:
                owner = self._admin.owner(self._settings.group, self._partition)
                named = owner is not None and owner[0].startswith(_CLIENT_PREFIX)
                url = owner[0].removeprefix(_CLIENT_PREFIX) if owner is not None and named else None
                self._leader = time.monotonic(), url
        return None if url == self._settings.url else url

    def forget_leader(self) -> None:
        """Ask anew who leads: the one that was known does not answer."""
        if time.monotonic() - self._leader[0] > LEADER_FRESH_S:
            self._leader = 0.0, None

    def fenced(self) -> None:
        """A write was refused by the broker: another one leads."""
        self._take(Input.FENCED)

    # ---- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._join()
            self._beat_s = time.monotonic()
            while not self._closing.is_set():
                self._turn()
            self._take(Input.LEAVE)
        except Exception as error:
            self._failed(error)
        finally:
            if self._consumer is not None:
                self._consumer.close()
            self._left.set()

    def _turn(self) -> None:
        found = self._due()
        if found is Input.SILENT and self._held_s is None:
            log.warning("This coordinator was out of touch for %.1f s", time.monotonic() - self._beat_s)
        if found is not None:
            self._take(found)
        self._beat_s = time.monotonic()
        message = self._consumer.poll(POLL_S)
        if message is not None and message.error() is not None:
            self._troubled(message.error())
        if self._rejoin:
            self._rejoin = False
            self._consumer.close()
            self._join()
            self._beat_s = time.monotonic()

    def _due(self) -> Input | None:
        held_s = self._held_s
        return due(
            self._membership,
            now_ms=_ms(time.monotonic()),
            beat_ms=_ms(self._beat_s),
            held_ms=None if held_s is None else _ms(held_s),
            session_ms=self._settings.session_ms,
        )

    def _join(self) -> None:
        from confluent_kafka import Consumer

        settings = {
            "log_level": 0,
            "error_cb": lambda error: None,
            **self._settings.client,
            "group.id": self._settings.group,
            "client.id": f"{_CLIENT_PREFIX}{self._settings.url}",
            # The only one that leaves the partition where it is when a member comes.
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": self._settings.session_ms,
            "heartbeat.interval.ms": min(HEARTBEAT_MS, self._settings.session_ms // 3),
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        self._consumer = Consumer(settings)
        self._consumer.subscribe(
            [self._settings.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        consumer.incremental_assign(partitions)
        if partitions:
            consumer.pause(partitions)  # to have it is all: the stores read it by themselves
        self._generation = _generation_of(consumer.consumer_group_metadata()) or self._generation
        self._member = str(consumer.memberid())
        self._refused_since_s = self._held_s = None
        self.joined.set()
        # Where others come and go, nothing is assigned to whoever has the partition already.
        self._take(Input.GIVEN if partitions or consumer.assignment() else Input.JOINED)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        consumer.incremental_unassign(partitions)
        if partitions and not self._closing.is_set():
            self._take(Input.TAKEN)

    def _lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Kafka was away for the session's time: the client joins as a new member; the old one's place is left."""
        consumer.incremental_unassign(partitions)
        if partitions and not self._closing.is_set():
            self._held_s = time.monotonic()
            self._take(Input.LOST)

    def _troubled(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        group = self._settings.group
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise AuthError(f"The worker may not join the group {group} (group.id): grant it Read on that group.")
        if error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            now_s = time.monotonic()
            self._refused_since_s = self._refused_since_s or now_s
            if now_s - self._refused_since_s > REFUSED_AFTER_S:
                raise ConfigError(
                    f"A Kafka Connect cluster of group.id={group} is running: stop all its workers first, and this one "
                    "takes over its connectors where they stand; or give this one another group.id and other topics.",
                    key="group.id",
                )
        text = str(error.str())
        if text != self._told:
            self._told = text
            log.warning("The group %s: %s", group, text)

    # ---- what follows --------------------------------------------------------------------------------------------

    def _take(self, given: Input, claim: int | None = None) -> None:
        with self._lock:
            before = self._membership
            self._membership, effects = step(before, given, claim=claim)
            number = self._membership.claim
        if self._membership.phase is not before.phase:
            # Of the old place it is told again and again.
            usual = self._held_s is not None and {before.phase, self._membership.phase} == _ASKING
            level = logging.DEBUG if usual else logging.INFO
            log.log(level, "%s: this coordinator of group %s is %s", *self._words(given))
        for effect in effects:
            self._carry_out(effect, number)

    def _words(self, given: Input) -> tuple[str, str, str]:
        return given.value.capitalize(), self._settings.group, self._membership.phase.value

    def _carry_out(self, effect: Effect, claim: int) -> None:
        if self._closing.is_set():
            return  # what runs then is wound down by whoever closes us
        match effect:
            case Effect.CLAIM:
                self._aside.submit(self._claim, claim)
            case Effect.LEAD:
                self._aside.submit(self._lead, claim)
            case Effect.ASK:
                self._questions.submit(self._ask, claim)
            case Effect.DEPOSE:
                self._guarded(self._leading.depose)
            case Effect.REJOIN:
                self._rejoin = True
            case Effect.LEAVE:
                pass  # the thread ends, and closing the client leaves

    def _claim(self, claim: int) -> None:
        if claim != self._membership.claim:
            return  # taken away, or begun anew
        try:
            self._leading.claim()
        except WherryError as error:
            log.warning("Leading cannot begin yet: %s", error.message)
            self._closing.wait(CLAIM_RETRY_S)
            self._take(Input.CLAIM_FAILED, claim)
        except Exception as error:
            self._failed(error)
        else:
            self._take(Input.CLAIMED, claim)

    def _lead(self, claim: int) -> None:
        try:
            self._leading.lead()
        except FencedError as error:
            log.warning("%s", error.message)
            self.fenced()
        except TransientError as error:
            log.warning("The connectors cannot be taken up yet: %s", error.message)
            self._closing.wait(CLAIM_RETRY_S)
            self._take(Input.LEAD_FAILED, claim)
        except Exception as error:
            self._failed(error)

    def _ask(self, claim: int) -> None:
        while not self._closing.is_set() and claim == self._membership.claim:
            asked_s = time.monotonic()
            try:
                holder = self._admin.holder(self._settings.group, self._partition, self._member)
            except WherryError as error:
                log.warning("Who leads cannot be found out: %s", error.message)
                self._closing.wait(CLAIM_RETRY_S)
                continue
            except Exception as error:
                self._failed(error)
                return
            if holder == self._member:
                if self._held_s is not None:
                    self._held_s = asked_s
                self._take(Input.CONFIRMED, claim)
            elif holder is None and self._held_s is not None and self._membership.phase is Phase.DOUBTING:
                # Our old place has just run out; what the group decides comes by itself, or we are lost again.
                self._closing.wait(ASK_RETRY_S)
                continue
            else:
                self._take(Input.REFUTED, claim)
            return

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except FencedError as error:
            log.warning("%s", error.message)
            self.fenced()
        except Exception as error:
            self._failed(error)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _generation_of(metadata: bytes | None) -> int:
    """The generation in a client's serialized group metadata; 0 when it is of an unknown form."""
    if not isinstance(metadata, bytes) or not metadata.startswith(_METADATA_MARK):
        return 0
    at = len(_METADATA_MARK)
    return max(int.from_bytes(metadata[at : at + _GENERATION_BYTES], "little", signed=True), 0)
