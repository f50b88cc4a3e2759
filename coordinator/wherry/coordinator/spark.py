"""The Spark driver: a session in the background, leases as jobs, and word of what became of them.

Decides how Spark is started and how a lease becomes a Spark task; never what is to run. Every lease is one task of a
job that runs `wherry.worker.lease.run` by name inside a Python worker; leases that begin together are one job.
Spark's own retry (`local[n,4]`) starts a lease again whose worker process died: the new attempt takes over through
OpenLease, the other leases of the job go on. Only when a job as a whole has failed is the coordinator told that its
leases are lost.

Jobs are RDD jobs, not DataFrames: a lease returns one row, so Arrow and the SQL planner have nothing to do. Measured
here, cold: first job 1.8 s instead of 5.8 s, JVM 277 MB instead of 400 MB; warm launch 80 ms instead of 120 ms.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from wherry.contract.errors import ErrorClass
from wherry.coordinator import events as ev
from wherry.coordinator.config import sparkmaster
from wherry.coordinator.dev.errors import JavaError
from wherry.coordinator.dev.java import find_java
from wherry.coordinator.executors import EXECUTORS_POLL_S, PLACE_WAIT, Executors, placed, warm_up
from wherry.coordinator.heap import HeapRest
from wherry.coordinator.threads import Threads

log = logging.getLogger(__name__)
jvm_log = logging.getLogger("wherry.spark.jvm")

SLOTS_DEFAULT: Final = 64
TASK_ATTEMPTS_MAX: Final = 4
RESTARTS_MAX: Final = 20
RESTART_DELAY_S: Final = 2.0
WARM_UP_AFTER_S: Final = 1.0
STOP_TIMEOUT_S: Final = 2.0
LOG_LINE_BYTES_MAX: Final = 16_384
TASKS_LISTED_MAX: Final = 10_000
JVM_END_WAIT_S: Final = 0.3
JOBS_MAX: Final = 20_000
RPC_THREADS: Final = 4
DAEMON_MODULE: Final = "wherry.worker.daemon"

_JVM_OPTIONS: Final = (
    # One thread compiles, one collects: the JVM only schedules. Session 9.2 s → 4.1 s, first job 5.5 s → 3.0 s.
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto "
    # It begins with a heap of a sixty-fourth of the machine's memory, of which a third is for what is new, and fills
    # that before it ever collects. Measured: 280 MB → 190 MB, at the same processor time for a job.
    "-Xms48m -Xmn24m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 -XX:-ShrinkHeapInSteps"
)

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

_EXECUTOR_CONF: Final = {
    # It only starts Python; Spark takes no less.
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _JVM_OPTIONS,
    "spark.locality.wait": PLACE_WAIT,
    "spark.task.maxFailures": str(TASK_ATTEMPTS_MAX),
    # A lease whose executor hangs: its silence is noticed by the coordinator long before.
    "spark.executor.heartbeatInterval": "5s",
    "spark.network.timeout": "60s",
    # What ran on an executor that is gone, runs again; an executor is not to blame for it.
    "spark.excludeOnFailure.enabled": "false",
}

_LOG4J: Final = """\
status = error
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{{1}}: %m%n%ex{{2}}
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.python.name = org.apache.spark.api.python.PythonRunner
logger.python.level = off
# Spark gives the root the level of this logger, because it takes a gateway for a shell.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""
_NOISE: Final = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging level")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark is started. `conf` are the user's own `spark.*` settings; they win."""

    master: str = f"local[{SLOTS_DEFAULT},{TASK_ATTEMPTS_MAX}]"
    conf: Mapping[str, str] = field(default_factory=dict)
    run_directory: Path = Path("/tmp")  # noqa: S108 - only where nobody says otherwise, as in a test
    log_level: str = "error"
    name: str = "wherry"
    host: str = ""
    """By which executors on other machines reach the driver; empty leaves it to Spark."""

    @property
    def local(self) -> bool:
        """Whether workers run beside the driver."""
        return sparkmaster.runs_locally(self.master)


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
        act = partial(_quietly, partial(_kill_task, context, job.group, job.order.index(lease)))
        threading.Thread(target=act, name="spark-cancel", daemon=True).start()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the session and its JVM."""
        self._stopping.set()
        self.state, self.message = "stopped", "Spark has been stopped."
        with self._lock:
            context, self._context = self._context, None
        if context is None:
            return
        process = getattr(context._gateway, "proc", None)
        stopper = threading.Thread(target=_quietly, args=(context.stop,), name="spark-stop", daemon=True)
        stopper.start()
        stopper.join(timeout_s)
        _end_jvm(context, process)

    # ---- the session ---------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        restart = 0
        while restart < RESTARTS_MAX:
            if self._stopping.wait(RESTART_DELAY_S if restart else 0):
                return
            restart += 1
            try:
                context = self._open()
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
            _end_jvm(context, getattr(context._gateway, "proc", None))

    def _open(self) -> Any:
        java = find_java()
        began = time.monotonic()
        # `spark.pyspark.python` is spark-submit's to obey, and there is none here.
        os.environ["PYSPARK_PYTHON"] = self.settings.conf.get("spark.pyspark.python") or os.environ.get(
            "PYSPARK_PYTHON", sys.executable
        )
        os.environ["JAVA_HOME"] = str(java.executable.parent.parent)
        from pyspark import SparkConf, SparkContext  # heavy, and only now needed

        # It prints a stack trace for each call that a dying JVM does not answer; the failure itself is told by us.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        conf = SparkConf(loadDefaults=False)
        for key, value in self._conf().items():
            conf.set(key, value)
        with _jvm_output_logged():
            context = SparkContext(conf=conf)
        self.started_s = time.monotonic() - began
        return context

    def _conf(self) -> dict[str, str]:
        directory = self.settings.run_directory / "spark"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        log4j = directory / "log4j2.properties"
        log4j.write_text(_LOG4J.format(level=self.settings.log_level))
        conf = {
            "spark.master": self.settings.master,
            "spark.app.name": self.settings.name,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": (
                f"{_JVM_OPTIONS} -Djava.io.tmpdir={directory} -Dlog4j2.configurationFile=file:{log4j}"
            ),
            "spark.local.dir": str(directory),
            "spark.scheduler.mode": "FAIR",
            "spark.speculation": "false",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Leases come and go for months: forget them soon.
            "spark.ui.retainedJobs": "50",
            "spark.ui.retainedStages": "50",
            "spark.ui.retainedTasks": "500",
            "spark.executor.processTreeMetrics.enabled": "false",
        }
        if self.settings.local:
            conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            # As many as there are slots would be made otherwise, and most of them only be there.
            conf["spark.rpc.netty.dispatcher.numThreads"] = str(RPC_THREADS)
        else:
            conf |= _EXECUTOR_CONF | ({"spark.driver.host": self.settings.host} if self.settings.host else {})
        if importlib.util.find_spec("wherry.worker") and importlib.util.find_spec(DAEMON_MODULE):
            conf["spark.python.daemon.module"] = DAEMON_MODULE
        own = dict(self.settings.conf)
        for key in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
            own[key] = f"{conf.get(key, '')} {own.get(key, '')}".strip()
        return conf | {key: value for key, value in own.items() if value}

    def _watch(self, context: Any) -> str:
        """Tell that Spark is there, warm it up while nothing runs, and return when it is no longer, and why."""
        process = getattr(context._gateway, "proc", None)
        if not self.settings.local:
            return self._watch_cluster(context, process)
        self._up(context)
        heap = HeapRest()
        if not self._stopping.wait(WARM_UP_AFTER_S) and self._job_number == 0:
            _quietly(lambda: _warm_up(context))
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
            _quietly(context._jvm.System.gc)

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
            if not self._stopping.is_set() and not _jvm_ended(context):  # else EngineDown tells, and blames no task
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


@contextlib.contextmanager
def _jvm_output_logged() -> Iterator[None]:
    """Have the JVM's stderr arrive as log records: PySpark gives it ours, and it begins with lines nobody needs."""
    java_gateway: Any = importlib.import_module("pyspark.java_gateway")
    plain = java_gateway.Popen

    def piped(*arguments: Any, **options: Any) -> Any:
        # PySpark has Python code run between fork and exec, only to keep Ctrl-C away; a session of its own does, too.
        # A plain fork wakes gRPC's threads in the child, which abort it when they find their descriptors closed.
        ours = {"stderr": subprocess.PIPE, "preexec_fn": None, "start_new_session": True}
        process = plain(*arguments, **{**options, **ours})
        threading.Thread(target=_log_lines, args=(process.stderr,), name="spark-stderr", daemon=True).start()
        return process

    java_gateway.Popen = piped
    try:
        yield
    finally:
        java_gateway.Popen = plain


def _log_lines(stream: Any) -> None:
    for line in iter(lambda: stream.readline(LOG_LINE_BYTES_MAX), b""):
        text = line.decode(errors="replace").rstrip()
        if text and not text.startswith(_NOISE):
            jvm_log.warning("%s", text)


def _lease_runner(entry: str) -> Callable[[Iterable[tuple[str, bytes]]], Iterator[tuple[str, dict[str, Any]]]]:
    """The function that runs inside Spark's Python worker.

    Nested, so that it travels by value: the worker imports `wherry.worker` and never the coordinator.
    """
    module, _, name = entry.partition(":")

    def run_leases(specs: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, dict[str, Any]]]:
        import importlib

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


def _kill_task(context: Any, group: str, index: int) -> None:
    """Kill the running attempt of one task of a job. PySpark has no call for it; the JVM's own is stable API."""
    jvm = context._jsc.sc()
    tracker = context.statusTracker()
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in [] if job is None else job.stageIds:
            tasks = jvm.statusStore().taskList(stage_id, 0, TASKS_LISTED_MAX)
            for number in range(tasks.size()):
                task = tasks.apply(number)
                if task.index() == index and task.status() == "RUNNING":
                    jvm.killTaskAttempt(task.taskId(), True, "The lease is over.")


def _jvm_ended(context: Any) -> bool:
    """Whether a call failed because the JVM is gone. Its process is given a moment to be seen dead."""
    process = getattr(context._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(JVM_END_WAIT_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _quietly(act: Callable[[], Any]) -> None:
    try:
        act()
    except Exception as error:
        log.debug("Spark: %s", error)


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


def _end_jvm(context: Any, process: Any) -> None:
    _quietly(context._gateway.shutdown)
    _forget_context()
    if process is None:
        return
    for end in (process.terminate, process.kill):
        try:
            process.wait(0.5)
            return
        except Exception:  # TimeoutExpired
            _quietly(end)


def _forget_context() -> None:
    """Let a new JVM be started in this process: PySpark keeps its gateway in class attributes for ever."""
    from pyspark import SparkContext

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
