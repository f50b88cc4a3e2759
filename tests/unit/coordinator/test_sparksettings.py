"""What Spark is told at the start, without starting it."""

from __future__ import annotations

from pathlib import Path

from wherry.coordinator.sparksettings import SparkSettings, conf_of


def conf(tmp_path: Path, master: str, host: str = "", **own: str) -> dict[str, str]:
    settings = {f"spark.{key.replace('_', '.')}": value for key, value in own.items()}
    return conf_of(SparkSettings(master, settings, tmp_path, host=host))


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
