"""What the worker's configuration says of Spark, of leases that start and of those that move."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.events import RestartPolicy
from wherry.coordinator.manners import (
    drain_ms,
    restart_policy,
    spark_settings,
    spread_times,
    standby_is_warm,
    starts_max,
    stop_ms,
)

NEEDED = {
    "bootstrap.servers": "a:1",
    "key.converter": "JsonConverter",
    "value.converter": "JsonConverter",
    "offset.storage.file.filename": "/tmp/offsets",
}


def worker(**settings: str) -> WorkerConfig:
    return WorkerConfig.of({**NEEDED, **{f"wherry.{key.replace('_', '.')}": value for key, value in settings.items()}})


def test_a_master_on_kubernetes_gets_its_settings_and_the_workers_own_host(tmp_path: Path) -> None:
    given = worker(
        spark_master="k8s://https://api:6443",
        spark_kubernetes_container_image="wherry:1",
        spark_executor_instances="3",
    )
    settings = spark_settings(given, tmp_path, "wherry-0.wherry")
    assert not settings.local
    assert settings.host == "wherry-0.wherry"
    assert settings.conf == {"spark.kubernetes.container.image": "wherry:1", "spark.executor.instances": "3"}


@pytest.mark.parametrize(
    ("given", "stops", "drains"), [("5000", 5_000, 3_500), ("800", 5_000, 800), ("30000", 30_000, 28_500)]
)
def test_a_worker_ends_within_what_its_tasks_are_given_and_never_sooner_than_in_five_seconds(
    given: str, stops: int, drains: int
) -> None:
    made = WorkerConfig.of({**NEEDED, "task.shutdown.graceful.timeout.ms": given})
    assert (stop_ms(made), drain_ms(made)) == (stops, drains)


def test_yarn_without_its_configuration_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(ConfigError, match="HADOOP_CONF_DIR"):
        spark_settings(worker(spark_master="yarn"), tmp_path, "here")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert spark_settings(worker(spark_master="yarn", spark_yarn_queue="etl"), tmp_path, "here").conf == {
        "spark.yarn.queue": "etl"
    }


def test_the_drivers_host_is_the_one_that_was_written_down(tmp_path: Path) -> None:
    given = worker(spark_master="spark://127.0.0.1:7077", spark_driver_host="other")
    assert spark_settings(given, tmp_path, "here").host == "other"
    assert spark_settings(worker(spark_master="spark://127.0.0.1:7077"), tmp_path, "here").host == "127.0.0.1"
    assert spark_settings(worker(), tmp_path, "here").host == "", "nobody calls from elsewhere"


def test_a_standby_keeps_spark_warm_where_that_takes_nothing_from_the_leader() -> None:
    assert standby_is_warm(worker())
    assert not standby_is_warm(worker(standby="cold"))
    assert not standby_is_warm(worker(spark_master="spark://a:7077")), "it would hold all cores"
    assert standby_is_warm(worker(spark_master="spark://a:7077", standby="warm"))


def test_starts_go_by_the_cores_unless_a_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert starts_max(worker()) == 32
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert starts_max(worker()) == 4
    assert starts_max(worker(lease_starts_max="1")) == 1


def test_the_window_before_leases_move_is_the_one_given() -> None:
    assert spread_times(worker()).window_ms == 30_000
    assert spread_times(worker(rebalance_window_ms="500")).window_ms == 500


def test_what_was_moved_stays_for_ten_windows_and_ten_seconds() -> None:
    found = [spread_times(worker(rebalance_window_ms=ms)).rest_ms for ms in ("0", "500", "3000", "30000")]
    assert found == [10_000, 10_000, 30_000, 300_000]


def test_restarts_are_as_the_worker_says() -> None:
    given = worker(
        restart_enabled="false",
        restart_max="3",
        restart_base_ms="20",
        restart_delay_max_ms="400",
        restart_healthy_ms="5",
    )
    assert restart_policy(given) == RestartPolicy(
        enabled=False, restarts_max=3, base_ms=20, delay_ms_max=400, healthy_ms=5
    )
    assert restart_policy(worker()) == RestartPolicy()
