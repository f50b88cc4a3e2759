"""Spark's executors as its driver sees them: who is there, how a lease is asked to go to one, and where they find us.

Speaks to the JVM through PySpark's gateway: what is used is public API of Scala's SparkContext or of its status store.
Decides nothing; a master that runs leases beside the driver (`local[…]`) has no executors in this sense.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wherry.coordinator import events as ev

log = logging.getLogger(__name__)

EXECUTORS_POLL_S: Final = 1.0
EXECUTORS_ABSENT_S: Final = 30.0
"""Without any executor for so long the session is taken for lost: a Master that forgot it gives it no new ones."""
EXECUTORS_ABSENT_S_MAX: Final = 480.0
SETTLED_S: Final = 2.0
"""Executors come one after another: leases that start when none has come for so long are dealt to all of them."""
SETTLED_S_MAX: Final = 15.0
SPARK_PORT: Final = 7077
PLACE_WAIT: Final = "0s"
"""How long Spark holds a lease back for the executor that was asked for. Where that has a slot it goes there
first; where it has none, or has died meanwhile, waiting would only delay the lease."""

_MASTERS: Final = re.compile(r"spark://(?P<first>[^,]+)")
_PORT: Final = re.compile(r":\d+$")
WARM_UP_ENTRY: Final = "wherry.worker.sidecars:own_host_endpoint"


@dataclass(frozen=True, slots=True)
class Found:
    """An executor that runs."""

    id: str
    host: str
    slots: int

    @property
    def place(self) -> str:
        """How Spark writes the wish to run there."""
        return f"executor_{self.host}_{self.id}"


class Executors:
    """Follows the executors of one session.

    Args:
        post: Told by ExecutorsSeen of every change.
        clock: Seconds, rising.
    """

    def __init__(self, post: Callable[[ev.Event], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._post = post
        self._clock = clock
        self._ids: frozenset[str] = frozenset()
        self._found: dict[str, Found] = {}
        self._absent_since_s = self._began_s = self._changed_s = clock()
        self._absent_s = EXECUTORS_ABSENT_S

    def new_session(self) -> None:
        """Forget those of the last session."""
        if self._found:
            self._post(ev.ExecutorsSeen(()))  # the new session's have the same ids
        self._ids, self._found = frozenset(), {}
        self._absent_since_s = self._began_s = self._changed_s = self._clock()

    @property
    def settled(self) -> bool:
        """Whether leases may start: executors are there and no more of them have come lately, or it has taken long."""
        now_s = self._clock()
        return now_s - self._began_s >= SETTLED_S_MAX or bool(self._ids and now_s - self._changed_s >= SETTLED_S)

    def place(self, executor: str) -> str:
        """How Spark writes the wish to run there; empty when it is not there, or when there is no wish."""
        found = self._found.get(executor)
        return "" if found is None else found.place

    def look(self, context: Any) -> list[Found]:
        """See who is there now, and return who is new."""
        ids = frozenset(filter(None, str(context._jsc.sc().getExecutorIds().mkString(",")).split(",")))
        if ids:
            self._absent_since_s, self._absent_s = self._clock(), EXECUTORS_ABSENT_S
        if ids == self._ids:
            return []
        found = {each.id: each for each in _listed(context) if each.id in ids}
        if found.keys() != ids:
            return []  # its list comes a moment later than its scheduler's; seen whole next time
        new = [each for each in found.values() if each.id not in self._found]
        for each in self._found.values():
            if each.id not in found:
                log.warning("Spark's executor %s on %s is gone; its leases run again elsewhere", each.id, each.host)
        for each in new:
            log.info("Spark's executor %s on %s is there, with %d slots", each.id, each.host, each.slots)
        self._ids, self._found, self._changed_s = ids, found, self._clock()
        self._post(ev.ExecutorsSeen(tuple(ev.Executor(each.id, each.slots) for each in found.values())))
        return new

    def given_up(self, master: str) -> str:
        """Why the session is to be made anew: no executor for long; empty when it is not."""
        absent_s = self._clock() - self._absent_since_s
        if absent_s < self._absent_s:
            return ""
        self._absent_s = min(self._absent_s * 2, EXECUTORS_ABSENT_S_MAX)
        return (
            f"Spark at {master} has given no executor for {absent_s:.0f} s: no Worker is there, all their cores or "
            "memory are taken by other applications, or it has forgotten this one, which is registered anew."
        )


def _listed(context: Any) -> list[Found]:
    listed = context._jsc.sc().statusStore().executorList(True)
    cores_per_task = int(context.getConf().get("spark.task.cpus", "1"))
    found = []
    for number in range(listed.size()):
        each = listed.apply(number)
        if str(each.id()) != "driver":
            # The port is added a moment after the executor.
            host = _PORT.sub("", str(each.hostPort()))
            found.append(Found(str(each.id()), host, max(int(each.totalCores()) // cores_per_task, 1)))
    return found


def placed(context: Any, specs: Sequence[tuple[str, bytes]], places: Sequence[str]) -> Any:
    """Return an RDD with one partition for each lease, which would better be computed at its place.

    PySpark's `parallelize` knows no places; Scala's `makeRDD` does. An empty place is none.
    """
    if not any(places):
        return context.parallelize(specs, len(specs))
    from pyspark import RDD
    from pyspark.serializers import CPickleSerializer

    jvm = context._jvm
    serializer = CPickleSerializer()
    rows = jvm.java.util.ArrayList()
    for spec, place in zip(specs, places, strict=True):
        wishes = jvm.java.util.ArrayList()
        if place:
            wishes.add(place)
        rows.add(jvm.scala.Tuple2(bytearray(serializer.dumps(spec)), _scala(jvm, wishes)))
    tag = jvm.scala.reflect.ClassTag.Any()
    rdd = context._jsc.sc().makeRDD(_scala(jvm, rows), tag)
    return RDD(jvm.org.apache.spark.api.java.JavaRDD(rdd, tag), context, serializer)


def _scala(jvm: Any, items: Any) -> Any:
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)


def warm_up(context: Any, new: Sequence[Found], ready: Callable[[], bool]) -> None:
    """Have new executors start Python and their sidecar host while nobody waits for it. Returns at once."""

    def run() -> None:
        if not ready():
            return
        with contextlib.suppress(Exception):  # what is wrong there is told by the first lease
            context.setJobGroup("wherry-warm-up", "warm-up", interruptOnCancel=True)
            rows = [(each.id, b"") for each in new]
            placed(context, rows, [each.place for each in new]).foreachPartition(_warm(WARM_UP_ENTRY))

    threading.Thread(target=run, name="spark-warm-up", daemon=True).start()


def _warm(entry: str) -> Callable[[Any], None]:
    """The function that warms up a worker; nested, so that it travels by value."""
    module, _, name = entry.partition(":")

    def act(rows: Any) -> None:
        import importlib

        getattr(importlib.import_module(module), name)()

    return act


def own_address(master: str, fallback: str) -> str:
    """Return the address of this machine by which executors reach it: the one its way to Spark's Master begins at."""
    match = _MASTERS.match(master)
    if match is None:
        return fallback
    host, _, port = match["first"].rpartition(":")
    if not port.isdecimal():
        host, port = match["first"], str(SPARK_PORT)
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            own = str(probe.getsockname()[0])
            return f"[{own}]" if ":" in own else own
    except OSError:
        return fallback
