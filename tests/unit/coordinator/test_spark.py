"""What Spark is told at the start, without starting it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wherry.coordinator.spark import SparkEngine, SparkSettings, _job_failure


def conf(tmp_path: Path, master: str, host: str = "", **own: str) -> dict[str, str]:
    settings = {f"spark.{key.replace('_', '.')}": value for key, value in own.items()}
    return SparkEngine(SparkSettings(master, settings, tmp_path, host=host), lambda event: None)._conf()


def test_a_local_master_is_not_seen_from_outside(tmp_path: Path) -> None:
    told = conf(tmp_path, "local[4,2]")
    assert told["spark.driver.host"] == told["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.executor.memory" not in told
    # A cluster's driver hears of as many executors as there are: Spark's own number fits that.
    key = "spark.rpc.netty.dispatcher.numThreads"
    assert key in told
    assert key not in conf(tmp_path, "spark://a:7077")


def test_a_cluster_is_told_where_the_driver_is_and_that_executors_only_start_python(tmp_path: Path) -> None:
    told = conf(tmp_path, "spark://a:7077", host="10.0.0.5")
    assert told["spark.driver.host"] == "10.0.0.5"
    assert "spark.driver.bindAddress" not in told
    assert told["spark.executor.memory"] == "512m"
    assert "-XX:+UseSerialGC" in told["spark.executor.extraJavaOptions"]


def test_a_persons_own_settings_win_and_java_options_are_added(tmp_path: Path) -> None:
    told = conf(tmp_path, "yarn", executor_memory="2g", executor_extraJavaOptions="-Da=b", driver_host="other", x="y")
    assert told["spark.executor.memory"] == "2g"
    assert told["spark.executor.extraJavaOptions"].endswith(" -Da=b")
    assert "-XX:+UseSerialGC" in told["spark.executor.extraJavaOptions"]
    assert told["spark.driver.host"] == "other"
    assert told["spark.x"] == "y"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Job aborted.\nModuleNotFoundError: No module named 'wherry.worker'\n\tat x",
            r"has no Wherry: install wherry",
        ),
        ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version", r"another version"),
        ('java.io.IOException: Cannot run program "/opt/python": error=2', r"can't start Python"),
        ("Job 3 cancelled part of cancelled job group", r"was cancelled"),
        ("a\n  java.lang.OutOfMemoryError: x\n org.SomeException: why\n", r"failed: org\.SomeException: why\."),
        ("", r"failed: RuntimeError\."),
    ],
)
def test_why_a_job_has_failed_is_told_in_a_sentence(text: str, told: str) -> None:
    sentence = _job_failure(RuntimeError(text))
    assert re.search(told, sentence), sentence
    assert "\n" not in sentence
