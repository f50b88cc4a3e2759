"""The standalone cluster, as far as it starts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.dev import spark
from wherry.coordinator.dev.errors import PortTakenError, ServerStartError
from wherry.coordinator.dev.ports import free_ports


def test_the_version_of_scala_is_that_of_the_jars(tmp_path: Path) -> None:
    (tmp_path / "spark-core_2.13-4.3.0.jar").touch()
    assert spark._scala_version(tmp_path) == "2.13"


def test_a_folder_without_spark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="no spark-core jar"):
        spark._scala_version(tmp_path)


def test_a_taken_port_is_told_before_a_master_is_started(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cluster = spark.SparkCluster(port=taken.getsockname()[1], data_dir=tmp_path)
        with pytest.raises(PortTakenError, match="Spark's Master"):
            cluster.start()


def test_a_cluster_that_was_not_started_has_nobody(tmp_path: Path) -> None:
    cluster = spark.SparkCluster(port=free_ports(1)[0], data_dir=tmp_path)
    assert cluster.workers_alive() == 0
    assert cluster.executors() == []
    cluster.close()
    assert tmp_path.is_dir()
