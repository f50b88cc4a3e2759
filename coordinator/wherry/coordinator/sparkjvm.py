"""The JVM behind a Spark session, where PySpark has no call: how it begins, what it prints, how it ends.

PySpark knows one session in a process's life, ours are made anew when theirs ends; so this leans on its inner parts.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from wherry.coordinator.dev.java import find_java
from wherry.coordinator.sparksettings import SparkSettings, conf_of

log = logging.getLogger(__name__)
jvm_log = logging.getLogger("wherry.spark.jvm")

LOG_LINE_BYTES_MAX: Final = 16_384
TASKS_LISTED_MAX: Final = 10_000
JVM_END_WAIT_S: Final = 0.3
_NOISE: Final = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging level")


def open_session(settings: SparkSettings) -> Any:
    """Start Spark; answers its context.

    Raises:
        JavaError: There is no Java that it runs on.
    """
    java = find_java()
    # `spark.pyspark.python` is spark-submit's to obey, and there is none here.
    os.environ["PYSPARK_PYTHON"] = settings.conf.get("spark.pyspark.python") or os.environ.get(
        "PYSPARK_PYTHON", sys.executable
    )
    os.environ["JAVA_HOME"] = str(java.executable.parent.parent)
    from pyspark import SparkConf, SparkContext  # heavy, and only now needed

    # It prints a stack trace for each call that a dying JVM does not answer; the failure itself is told by us.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    conf = SparkConf(loadDefaults=False)
    for key, value in conf_of(settings).items():
        conf.set(key, value)
    with _jvm_output_logged():
        return SparkContext(conf=conf)


def kill_task(context: Any, group: str, index: int) -> None:
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


def process_of(context: Any) -> Any:
    """The JVM's process; None where it isn't a child of ours."""
    return getattr(context._gateway, "proc", None)


def has_ended(context: Any) -> bool:
    """Whether a call failed because the JVM is gone. Its process is given a moment to be seen dead."""
    process = process_of(context)
    if process is None:
        return False
    try:
        process.wait(JVM_END_WAIT_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def quietly(act: Callable[[], Any]) -> None:
    """Do what may fail when the JVM is about to go, or gone."""
    try:
        act()
    except Exception as error:
        log.debug("Spark: %s", error)


def end(context: Any) -> None:
    """End the JVM of a session, the hard way if need be."""
    process = process_of(context)
    quietly(context._gateway.shutdown)
    _forget_context()
    if process is None:
        return
    for harder in (process.terminate, process.kill):
        try:
            process.wait(0.5)
            return
        except Exception:  # TimeoutExpired
            quietly(harder)


def _forget_context() -> None:
    """Let a new JVM be started in this process: PySpark keeps its gateway in class attributes for ever."""
    from pyspark import SparkContext

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


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
