"""The Spark driver: a session in the background, leases as jobs, and word of what became of them.

Decides how a lease becomes a Spark task; never what is to run. Every lease is one task of a job that runs
`wherry.worker.lease.run` by name inside a Python worker; leases that begin together are one job.
Spark's own retry (`local[n,4]`) starts a lease again whose worker process died: the new attempt takes over through
OpenLease, the other leases of the job go on. Only when a job as a whole has failed is the coordinator told that its
leases are lost.

Jobs are RDD jobs, not DataFrames: a lease returns one row, so Arrow and the SQL planner have nothing to do. Measured
here, cold: first job 1.8 s instead of 5.8 s, JVM 277 MB instead of 400 MB; warm launch 80 ms instead of 120 ms.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from wherry.contract.errors import ErrorClass
from wherry.coordinator import events as ev
from wherry.coordinator import sparkjvm
from wherry.coordinator.dev.errors import JavaError
from wherry.coordinator.executors import EXECUTORS_POLL_S, Executors, placed, warm_up
from wherry.coordinator.heap import HeapRest
from wherry.coordinator.sparkjvm import quietly
from wherry.coordinator.sparksettings import SparkSettings
from wherry.coordinator.threads import Threads

log = logging.getLogger(__name__)

RESTARTS_MAX: Final = 20
RESTART_DELAY_S: Final = 2.0
WARM_UP_AFTER_S: Final = 1.0
STOP_TIMEOUT_S: Final = 2.0
JOBS_MAX: Final = 20_000

_JVM_ENDED: Final = "The Spark JVM has ended; it is started again."

_JOB_FAILURES: Final = {
    "No module named 'wherry": (
        "The Python of Spark's executors has no Wherry: install wherry[spark] there, of this version, or point "
        "wherry.spark.pyspark.python at a Python that has it."
    ),
    "PYTHON_VERSION_MISMATCH": (
        "The Python of Spark's executors is of another version than this worker's: point wherry.spark.pyspark.python "
        "at one of the same version."
    ),
    "Cannot run program": (
        "Spark's executors can't start Python: there is no program by the path of this worker's; point "
        "wherry.spark.pyspark.python at theirs."
    ),
    "cancelled": "The Spark job of the lease was cancelled.",
}
"""What can be told better than Spark does, by a sign in its words; the first that fits."""


@dataclass(slots=True)
class _Job:
    group: str
    connector: str
    order: tuple[str, ...]
    """Lease ids by number of their Spark task."""
    leases: set[str]
    """Those still wanted."""


class SparkEngine:
    """Runs leases. `post` receives EngineUp, EngineDown, LeaseEnded and LeaseLost, from several threads.

    Args:
        settings: How Spark is started.
        post: Takes events; must not block.
        entry: module:function that runs one lease inside the worker; gets the spec's bytes, answers a dict with
            reason, error_class, message and trace.
    """

    def __init__(
        self,
        settings: SparkSettings,
        post: Callable[[ev.Event], None],
        *,
        entry: str = "wherry.worker.lease:run",
    ) -> None:
        self.settings = settings
        self._post = post
        self._entry = entry
        self._lock = threading.Lock()
        self._context: Any = None
        self._jobs: dict[str, _Job] = {}
        self._job_number = 0
        self._stopping = threading.Event()
        self._keeper: threading.Thread | None = None
        # A job holds one until its last lease has ended. PySpark has a connection and a thread of the JVM for each.
        self._threads = Threads("spark-job", JOBS_MAX)
        self.state = "starting"
        self.message = "Spark is starting."
        self.started_s: float | None = None
        self._executors = Executors(post=lambda event: self._post(event))

    def start(self) -> None:
        """Start the session in the background; EngineUp or EngineDown says how it went."""
        self._keeper = threading.Thread(target=self._keep, name="spark-session", daemon=True)
        self._keeper.start()

    def submit(
        self, connector: str, specs: Sequence[tuple[str, bytes]], description: str, executors: Sequence[str] = ()
    ) -> None:
        """Run leases, each given by id and spec, as one job. Returns at once; LeaseLost if it can't be done.

        Args:
            connector: Whose leases they are.
            specs: Id and serialized LeaseSpec of each.
            description: What people see in Spark's pages.
            executors: Where each would better run, as ids of executors; an empty one, or none at all, is no wish.
        """
        with self._lock:
            self._job_number += 1
            order = tuple(lease for lease, _ in specs)
            job = _Job(f"wherry-{self._job_number}", connector, order, set(order))
            self._jobs[job.group] = job
            context = self._context
        if context is None:
            self._finish(job, self.message)
            return
        places = [self._executors.place(each) for each in executors]
        self._threads.submit(partial(self._run, context, job, list(specs), description, places))

    def cancel(self, lease: str) -> None:
        """End the process of a lease; the last resort for one that neither reports nor obeys.

        Only its own Spark task is killed: Spark starts that once more, the new attempt is refused and returns. The
        other leases of the job go on.
        """
        with self._lock:
            job = next((job for job in self._jobs.values() if lease in job.leases), None)
            context = self._context
            if job is None or context is None:
                return
            job.leases.discard(lease)
        act = partial(quietly, partial(sparkjvm.kill_task, context, job.group, job.order.index(lease)))
        threading.Thread(target=act, name="spark-cancel", daemon=True).start()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the session and its JVM."""
        self._stopping.set()
        self.state, self.message = "stopped", "Spark has been stopped."
        with self._lock:
            context, self._context = self._context, None
        if context is None:
            return
        stopper = threading.Thread(target=quietly, args=(context.stop,), name="spark-stop", daemon=True)
        stopper.start()
        stopper.join(timeout_s)
        sparkjvm.end(context)

    # ---- the session ---------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        restart = 0
        while restart < RESTARTS_MAX:
            if self._stopping.wait(RESTART_DELAY_S if restart else 0):
                return
            restart += 1
            try:
                began = time.monotonic()
                context = sparkjvm.open_session(self.settings)
                self.started_s = time.monotonic() - began
            except JavaError as error:
                self._down(ev.Failure(ErrorClass.CONFIG, str(error)), permanent=True)
                return
            except Exception as error:
                self._down(ev.Failure(ErrorClass.TRANSIENT, _session_failure(error)), permanent=restart > 2)
                continue
            restart = 1  # those in a row count
            with self._lock:
                self._context = context
            if self._stopping.is_set():  # stop came while the session was starting
                self.stop()
                return
            why = self._watch(context)
            if self._stopping.is_set():
                return
            with self._lock:
                self._context = None
            self._down(ev.Failure(ErrorClass.TRANSIENT, why))
            sparkjvm.end(context)

    def _watch(self, context: Any) -> str:
        """Tell that Spark is there, warm it up while nothing runs, and return when it is no longer, and why."""
        process = sparkjvm.process_of(context)
        if not self.settings.local:
            return self._watch_cluster(context, process)
        self._up(context)
        heap = HeapRest()
        if not self._stopping.wait(WARM_UP_AFTER_S) and self._job_number == 0:
            quietly(lambda: _warm_up(context))
        while not self._stopping.is_set():
            if process is None:
                self._stopping.wait(1.0)
            elif process.poll() is not None:
                break
            else:
                with contextlib.suppress(Exception):  # TimeoutExpired: it lives
                    process.wait(0.5)
            self._rest(context, heap)
        return _JVM_ENDED

    def _rest(self, context: Any, heap: HeapRest) -> None:
        """Have the JVM give memory back when it has had much to do and now has not."""
        if heap.due(self._job_number, time.monotonic()):
            quietly(context._jvm.System.gc)

    def _up(self, context: Any) -> None:
        self.state, self.message = "up", "Spark is running."
        log.info("Spark %s is up after %.1f s (%s)", context.version, self.started_s, self.settings.master)
        self._post(ev.EngineUp())

    def _watch_cluster(self, context: Any, process: Any) -> str:
        """Follow executors until the session is lost: its JVM, its place at the Master, or all executors for long."""
        self._executors.new_session()
        up, heap = False, HeapRest()
        while not self._stopping.wait(EXECUTORS_POLL_S):
            if process is not None and process.poll() is not None:
                break
            try:
                if context._jsc.sc().isStopped():
                    return f"Spark at {self.settings.master} has ended the session; it is started again."
                new = self._executors.look(context)
            except Exception as error:
                log.debug("Spark did not tell its executors: %s", error)
                continue
            if new:
                warm_up(context, new, lambda: not self._stopping.is_set())
            if not up and self._executors.settled:
                up = True
                self._up(context)
            if why := self._executors.given_up(self.settings.master):
                return why
            self._rest(context, heap)
        return _JVM_ENDED

    def _down(self, failure: ev.Failure, *, permanent: bool = False) -> None:
        self.state, self.message = "failed", failure.message
        log.error("%s", failure.message)
        with self._lock:
            self._jobs.clear()
        self._post(ev.EngineDown(failure, permanent))

    # ---- jobs ----------------------------------------------------------------------------------------------------

    def _run(
        self, context: Any, job: _Job, specs: list[tuple[str, bytes]], description: str, places: list[str]
    ) -> None:
        try:
            # Thread-local in the JVM, too: PySpark pins a JVM thread to each Python thread.
            context.setJobGroup(job.group, description, interruptOnCancel=True)
            context.setLocalProperty("spark.scheduler.pool", job.connector)
            rows = placed(context, specs, places).mapPartitions(_lease_runner(self._entry)).collect()
        except Exception as error:
            message = _job_failure(error)
            # If the JVM has ended, EngineDown tells, and blames no task.
            if not self._stopping.is_set() and not sparkjvm.has_ended(context):
                self._finish(job, message)
            return
        for lease, result in rows:
            self._post(_ended(job.connector, lease, result))
        self._finish(job, "The Spark task of the lease ended without a result.")

    def _finish(self, job: _Job, message: str) -> None:
        with self._lock:
            self._jobs.pop(job.group, None)
            lost, job.leases = job.leases, set()
        for lease in sorted(lost):
            self._post(ev.LeaseLost(job.connector, lease, message))


def _lease_runner(entry: str) -> Callable[[Iterable[tuple[str, bytes]]], Iterator[tuple[str, dict[str, Any]]]]:
    """The function that runs inside Spark's Python worker.

    Nested, so that it travels by value: the worker imports `wherry.worker` and never the coordinator.
    """
    module, _, name = entry.partition(":")

    def run_leases(specs: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, dict[str, Any]]]:

        run = getattr(importlib.import_module(module), name)
        for lease, spec in specs:
            yield lease, dict(run(bytes(spec)))

    return run_leases


def _ended(connector: str, lease: str, result: Mapping[str, Any]) -> ev.LeaseEnded:
    """The result row as an event: it counts only if the lease's last word on its stream was lost."""
    reasons = {1: ev.EndReason.DRAINED, 2: ev.EndReason.SPLITS_DONE, 3: ev.EndReason.IDLE, 5: ev.EndReason.FENCED}
    reason = reasons.get(int(result.get("reason") or 0), ev.EndReason.FAILED)
    failure = None
    if reason is ev.EndReason.FAILED:
        number = int(result.get("error_class") or ErrorClass.BUG)
        error_class = ErrorClass(number) if number in set(ErrorClass) else ErrorClass.BUG
        message = str(result.get("message") or "The lease failed without saying why.")
        failure = ev.Failure(error_class, message, str(result.get("trace") or ""))
    return ev.LeaseEnded(connector, lease, -1, reason, failure)


def _warm_up(context: Any) -> None:
    """Run an empty job: loads Spark's scheduler classes and forks the first worker while nobody waits."""
    context.setJobGroup("wherry-warm-up", "warm-up", interruptOnCancel=True)
    context.parallelize([0], 1).mapPartitions(lambda rows: rows).collect()


def _job_failure(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:  # Py4J asks the JVM for the text, and that may be gone
        text = ""
    for sign, sentence in _JOB_FAILURES.items():
        if sign in text:
            return sentence
    line = next((line.strip() for line in text.splitlines() if "Exception:" in line or "exited" in line), "")
    return f"The Spark task of the lease failed: {line[:500] or type(error).__name__}."


def _session_failure(error: Exception) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"Spark could not be started: {line[:500]}."
