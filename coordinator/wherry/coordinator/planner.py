"""What there is to do: asks a source's sidecar for its plan, Kafka for the partitions of a sink's topics.

Blocks for as long as a sidecar takes, within a deadline; called in a lane of the connector's own. A source's sidecar is
held between plans while it may have something to say (Watch, Events) or will soon be asked again. Where a plugin allows
it, the connectors of that plugin are planned in one process (`planning.py`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wherry.connector.v1 import plugin_pb2
from wherry.contract import from_proto
from wherry.contract.client import SidecarClient
from wherry.contract.description import Role
from wherry.contract.errors import ConfigError, ErrorClass, TransientError, WherryError
from wherry.contract.javaregex import RegexError, compile_java
from wherry.contract.plan import Plan
from wherry.contract.position import Position, kafka_partition_json, parse_kafka_position
from wherry.control.v1 import lease_pb2
from wherry.coordinator import events as ev
from wherry.coordinator.commits import group_of
from wherry.coordinator.config import direct
from wherry.coordinator.effects import LoadPlan
from wherry.coordinator.grants import Grants
from wherry.coordinator.hosts import (
    ACQUIRE_TIMEOUT_S,
    Acquired,
    HostClient,
    is_gone,
    once_more,
    quietly_release,
)
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.planning import Share, SharedPlanning

log = logging.getLogger(__name__)
sidecar_log = logging.getLogger("wherry.sidecar")

PLAN_TIMEOUT_S: Final = 25.0
CALL_TIMEOUT_S: Final = 20.0
PLAN_WITHIN_S: Final = ACQUIRE_TIMEOUT_S + 2 * PLAN_TIMEOUT_S
"""For a plan, also when one process is stuck and another one is asked."""
CALL_WITHIN_S: Final = ACQUIRE_TIMEOUT_S + CALL_TIMEOUT_S
HOLD_REPLAN_MS_MAX: Final = 60_000
"""A sidecar that is asked again later than this is stopped meanwhile."""

_PROCESS_TROUBLE: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})
"""What gRPC itself says when a process is gone or stuck; a plugin's own transient error is told with other words."""

_LEVELS: Final = {
    plugin_pb2.LOG_LEVEL_DEBUG: logging.DEBUG,
    plugin_pb2.LOG_LEVEL_WARN: logging.WARNING,
    plugin_pb2.LOG_LEVEL_ERROR: logging.ERROR,
}


@dataclass(slots=True)
class _Held:
    """A connector's sidecar: a process of its own (`acquired`), or a part of one that it shares."""

    generation: int
    client: SidecarClient
    holder: str = ""
    acquired: Acquired | None = None
    share: Share | None = None
    watched: bool = False
    released: bool = False


class Planner:
    """Makes plans. Calls for one connector come one after another; different connectors at once.

    Args:
        hosts: Gives sidecars.
        kafka: Tells topics and group members.
        grants: Tells which sidecar a connector wants.
        post: Takes PlanChanged and ConnectorFailed.
        keep_config: Told of configuration a sidecar wants kept: connector, values.
    """

    def __init__(
        self,
        hosts: HostClient,
        kafka: KafkaAdmin,
        grants: Grants,
        post: Callable[[ev.Event], None],
        keep_config: Callable[[str, Mapping[str, str]], None],
    ) -> None:
        self._hosts = hosts
        self._kafka = kafka
        self._grants = grants
        self._post = post
        self._keep_config = keep_config
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        # Sinks of direct pipelines, held to apply what they have staged.
        self._held_sinks: dict[str, _Held] = {}
        self._shared = SharedPlanning(hosts, self._take, self._shared_ended)

    def plan(self, effect: LoadPlan, positions: Sequence[Position]) -> ev.SourcePlan | ev.SinkPlan:
        """What there is to do from these positions.

        Raises:
            WherryError: It can't be told; the class says what happens next.
        """
        if effect.spec.kind is ev.Kind.SINK:
            partitions = self.sink_partitions(effect.spec, check_group=effect.first)
            caught_up = self._caught_up(effect.spec, partitions) if effect.restored else frozenset()
            return ev.SinkPlan(partitions, caught_up=caught_up)
        if effect.first and effect.spec.kind is ev.Kind.SOURCE:
            self._grants.check_topic_creation(effect.spec)
        return once_more(
            lambda left_s: ev.SourcePlan(self._source_plan(effect, positions, left_s)),
            lambda error: self._give_up(effect.connector, error),
            within_s=PLAN_WITHIN_S,
        )

    def release(self, connector: str) -> bool:
        """Let go of a connector's sidecars; False if none was held."""
        return self._drop(connector, self._held, self._held_sinks)

    def _drop(self, connector: str, *kept: dict[str, _Held]) -> bool:
        with self._lock:
            found = [held for each in kept if (held := each.pop(connector, None)) is not None]
        for held in found:
            self._let_go(held)
        return bool(found)

    def _let_go(self, held: _Held) -> None:
        held.released = True
        held.client.close()
        if held.share is not None:
            self._shared.let_go(held.share)
        if held.acquired is not None:
            quietly_release(self._hosts, held.acquired, held.holder)

    def _give_up(self, connector: str, error: TransientError) -> bool:
        """Let go of a sidecar that did not do, so that another may try; False if that would change nothing.

        If it was shared, the next one is the connector's own: what it does to a process harms no other again.
        """
        with self._lock:
            held = self._held.get(connector)
        if held is None:  # it never came up, or whoever watches it has noticed its end before us
            return is_gone(error)
        if held.share is not None:
            if error.reason not in _PROCESS_TROUBLE:
                return False
            self._shared.set_apart(connector)
        self.release(connector)
        return True

    def on_delete(self, spec: ev.ConnectorSpec, generation: int) -> None:
        """Tell a connector's sidecar that the connector was deleted; starts one if need be."""

        def tell(left_s: float) -> None:
            held = self._hold(spec, generation, left_s)
            held.client.on_delete(spec.name, deadline_s=min(CALL_TIMEOUT_S, left_s))

        try:
            once_more(tell, lambda error: is_gone(error) and self._give_up(spec.name, error), within_s=CALL_WITHIN_S)
        finally:
            self.release(spec.name)
            self._shared.forget(spec.name)

    def apply_tokens(
        self, spec: ev.ConnectorSpec, generation: int, tokens: Sequence[bytes], positions: Sequence[Position]
    ) -> None:
        """Have a two-phase sink apply what it staged, perhaps in an older generation; repeating it is harmless."""
        is_direct = direct.is_direct(spec.config)

        def apply(left_s: float) -> None:
            held = (self._hold_sink if is_direct else self._hold)(spec, generation, left_s)
            held.client.commit(generation, tokens, positions, deadline_s=min(CALL_TIMEOUT_S, left_s))

        def give_up(error: TransientError) -> bool:
            # It may have died since the last commit.
            if not is_direct:
                return self._give_up(spec.name, error)
            self._drop(spec.name, self._held_sinks)
            return True

        once_more(apply, give_up, within_s=CALL_WITHIN_S)

    def alter_offsets(self, spec: ev.ConnectorSpec, generation: int, positions: Sequence[Position]) -> bool:
        """Have the plugins check and carry out a change of offsets; False: one may keep others elsewhere."""
        handled = [self._alter(spec, sidecar, positions) for sidecar in self._grants.altering(spec, generation)]
        return all(handled)

    def _alter(self, spec: ev.ConnectorSpec, sidecar: lease_pb2.SidecarSpec, positions: Sequence[Position]) -> bool:
        holder = f"offsets-{spec.name}"

        def alter(left_s: float) -> bool:
            acquired = self._acquire(sidecar, holder, left_s)
            try:
                with SidecarClient(acquired.endpoint, ready=True) as client:
                    return client.alter_offsets(
                        Role(sidecar.role),
                        spec.name,
                        sidecar.class_name,
                        dict(sidecar.config),
                        positions,
                        dict(sidecar.secrets),
                        deadline_s=min(CALL_TIMEOUT_S, left_s),
                    )
            finally:
                quietly_release(self._hosts, acquired, holder)

        # A connector that was stopped a moment ago lets go of its sidecar, which may be this one while it starts.
        return once_more(alter, is_gone, within_s=CALL_WITHIN_S)

    # ---- sources -------------------------------------------------------------------------------------------------

    def _source_plan(self, effect: LoadPlan, positions: Sequence[Position], left_s: float) -> Plan:
        held = self._hold(effect.spec, effect.generation, left_s)
        plan = held.client.plan(
            positions,
            effect.spec.tasks_max,
            effect.splits_active,
            effect.splits_max,
            deadline_s=min(PLAN_TIMEOUT_S, left_s),
        )
        watched = self._grants.description(effect.spec).capabilities.watch
        soon = 0 < plan.replan_after_ms <= HOLD_REPLAN_MS_MAX
        # While leases run they keep the sidecar anyway; holding it then costs nothing.
        if plan.complete or not (watched or soon or plan.tasks or plan.splits):
            self.release(effect.connector)
        return plan

    def _hold(self, spec: ev.ConnectorSpec, generation: int, left_s: float) -> _Held:
        held = self._current(self._held, spec.name, generation)
        if held is not None:
            return held
        self.release(spec.name)
        held = self._share(spec, generation)
        if held is None:
            sidecar = self._grants.sidecar(spec, generation)
            held = self._own(generation, sidecar, f"plan-{spec.name}-{generation}", left_s)
        with self._lock:
            self._held[spec.name] = held
        if held.share is None:
            self._listen(spec, held)
        return held

    def _hold_sink(self, spec: ev.ConnectorSpec, generation: int, left_s: float) -> _Held:
        """The sink's sidecar of a direct pipeline; that of its source is held beside it, for plans."""
        held = self._current(self._held_sinks, spec.name, generation)
        if held is not None:
            return held
        self._drop(spec.name, self._held_sinks)
        sidecar = self._grants.sink_sidecar(spec, generation)
        held = self._own(generation, sidecar, f"staged-{spec.name}-{generation}", left_s)
        with self._lock:
            self._held_sinks[spec.name] = held
        return held

    def _current(self, kept: dict[str, _Held], connector: str, generation: int) -> _Held | None:
        """What is held of a connector, if it is of this generation and hasn't ended."""
        with self._lock:
            held = kept.get(connector)
        if held is None or held.generation != generation or (held.share is not None and held.share.over):
            return None
        return held

    def _own(self, generation: int, sidecar: lease_pb2.SidecarSpec, holder: str, left_s: float) -> _Held:
        acquired = self._acquire(sidecar, holder, left_s)
        return _Held(generation, SidecarClient(acquired.endpoint, ready=True), holder, acquired)

    def _acquire(self, sidecar: lease_pb2.SidecarSpec, holder: str, left_s: float) -> Acquired:
        return self._hosts.acquire(sidecar, holder, timeout_s=min(ACQUIRE_TIMEOUT_S, left_s))

    def _share(self, spec: ev.ConnectorSpec, generation: int) -> _Held | None:
        """A part of the plugin's shared process; None when the connector is to have one of its own."""
        if not self._grants.shares_planning(spec) or self._shared.is_apart(spec.name):
            return None
        try:
            share = self._shared.hold(self._grants.sidecar(spec, generation))
        except TransientError as error:
            if error.reason not in _PROCESS_TROUBLE:
                raise
            log.warning("The shared process of %s's plugin can't be used: %s", spec.name, error)
            self._shared.set_apart(spec.name)
            return None
        watched = self._grants.description(spec).capabilities.watch
        return _Held(generation, share.client, share=share, watched=watched)

    def _shared_ended(self, connectors: Sequence[str]) -> None:
        """A shared process has ended by itself: what it was bound to is bound anew by the next plan."""
        for connector in connectors:
            with self._lock:
                held = self._held.get(connector)
            if held is not None and held.share is not None and held.watched:
                self._post(ev.PlanChanged(connector, "the sidecar ended"))

    def _listen(self, spec: ev.ConnectorSpec, held: _Held) -> None:
        threads = [threading.Thread(target=self._follow_events, args=(spec.name, held), daemon=True)]
        if self._grants.description(spec).capabilities.watch:
            threads.append(threading.Thread(target=self._follow_watch, args=(spec.name, held), daemon=True))
        for thread in threads:
            thread.name = f"events-{spec.name}"
            thread.start()

    def _follow_events(self, connector: str, held: _Held) -> None:
        try:
            for event in held.client.events():
                self._take(connector, event)
        except (WherryError, ValueError) as error:
            log.debug("Events of %s ended: %s", connector, error)

    def _follow_watch(self, connector: str, held: _Held) -> None:
        try:
            for reason in held.client.watch():
                self._post(ev.PlanChanged(connector, reason))
        except (WherryError, ValueError) as error:
            log.debug("Watch of %s ended: %s", connector, error)
        if not held.released:
            # Nobody is watching any more: the next plan begins a new watch.
            with self._lock:
                if self._held.get(connector) is held:
                    del self._held[connector]
            if held.acquired is not None:
                quietly_release(self._hosts, held.acquired, held.holder)
            self._post(ev.PlanChanged(connector, "the sidecar ended"))

    def _take(self, connector: str, event: plugin_pb2.EventsResponse) -> None:
        match event.WhichOneof("event"):
            case "log":
                level = _LEVELS.get(event.log.level, logging.INFO)
                fields = {"connector": connector, **{f"field_{k}": v for k, v in event.log.fields.items()}}
                sidecar_log.log(level, "%s", event.log.message, extra=fields)
            case "plan_changed":
                self._post(ev.PlanChanged(connector, event.plan_changed.reason))
            case "failed":
                error_class = from_proto.known(ErrorClass, event.failed.error_class, ErrorClass.BUG)
                self._post(ev.ConnectorFailed(connector, ev.Failure(error_class, event.failed.message)))
            case "config_update":
                self._keep_config(connector, dict(event.config_update.values))
            case "rate_limited":
                sidecar_log.warning("Rate limited: %s", event.rate_limited.message, extra={"connector": connector})
            case _:
                pass  # metrics have no reader yet

    # ---- sinks ---------------------------------------------------------------------------------------------------

    def sink_partitions(self, spec: ev.ConnectorSpec, *, check_group: bool = False) -> tuple[str, ...]:
        """Partitions of a sink's topics that exist now, in order."""
        if check_group:
            self._refuse_live_members(spec)
        return partitions_of(spec.config, self._kafka.topics())

    def _caught_up(self, spec: ev.ConnectorSpec, partitions: Sequence[str]) -> frozenset[str]:
        """Partitions that end where the group stands; none when a task of this class may not wait without a lease."""
        if not self._grants.parks(spec):
            return frozenset()
        own = {parse_kafka_position(Position(partition, None))[0]: partition for partition in partitions}
        ends = self._kafka.end_offsets(own)
        from_start = self._grants.reads_from_start(spec)
        if from_start and not any(ends.values()):
            return frozenset(own[each] for each in ends)  # nothing was ever written: no need to ask the group
        stands = self._kafka.group_offsets(group_of(spec.name, spec.config), tuple(own))
        # Where reading begins at the end, it has to be seen by a lease, so that what comes after it is not left out.
        unread = 0 if from_start else None
        return frozenset(own[each] for each, end in ends.items() if end == stands.get(each, unread))

    def _refuse_live_members(self, spec: ev.ConnectorSpec) -> None:
        group = group_of(spec.name, spec.config)
        members = self._kafka.group_members(group)
        if members:
            raise TransientError(
                f"Consumer group {group} has {len(members)} live member(s), {', '.join(sorted(members)[:3])}: another "
                f"worker still runs the connector {spec.name}. Stop it there first; it starts here when they are gone."
            )


def partitions_of(config: Mapping[str, str], topics: Mapping[str, int]) -> tuple[str, ...]:
    """Partitions of the topics that a sink's `topics` or `topics.regex` names, as compact JSON, in order.

    Raises:
        ConfigError: The regular expression isn't one.
    """
    regex = config.get("topics.regex", "").strip()
    if regex:
        try:
            matches = compile_java(regex).fullmatch
        except RegexError as error:
            raise ConfigError(
                f"Invalid value {regex} for configuration topics.regex: Invalid regex: {error}", key="topics.regex"
            ) from error
        names = [name for name in topics if matches(name)]
    else:
        names = [name.strip() for name in config.get("topics", "").split(",") if name.strip() in topics]
    return tuple(
        kafka_partition_json(name, partition) for name in sorted(set(names)) for partition in range(topics[name])
    )


def failure_of(error: Exception) -> ev.Failure:
    """An exception as the machine takes it; one that nobody foresaw is a BUG."""
    if isinstance(error, WherryError):
        return ev.Failure(error.error_class, error.message)
    return ev.Failure(ErrorClass.BUG, f"{type(error).__name__}: {error}")
