"""Masters of Spark: which are taken, and what is said of those that are not."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.sparkmaster import check, runs_locally


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[8]",
        "local[*]",
        "local[64,4]",
        "local-cluster[2,4,1024]",
        "spark://here:7077",
        "spark://10.0.0.1:7077,10.0.0.2:7077",
        "spark://[::1]:7077",
    ],
)
def test_a_master_that_needs_nothing_else_is_taken(master: str) -> None:
    check(master, {}, {})


@pytest.mark.parametrize("master", ["", "localhost", "local[x]", "spark://here", "spark:here:7077", "mesos://a:1"])
def test_what_is_no_master_is_refused_with_what_would_be_one(master: str) -> None:
    with pytest.raises(ConfigError, match=r"write local\[SLOTS,ATTEMPTS\].*spark://HOST:PORT.*yarn.*k8s://") as caught:
        check(master, {}, {})
    assert repr(master) in str(caught.value)


def test_yarn_is_taken_with_the_clusters_configuration_and_refused_without() -> None:
    check("yarn", {}, {"YARN_CONF_DIR": "/etc/hadoop"})
    with pytest.raises(ConfigError, match="HADOOP_CONF_DIR"):
        check("yarn", {}, {"HADOOP_CONF_DIR": ""})


def test_kubernetes_is_taken_with_an_image_and_refused_without() -> None:
    check("k8s://https://api:6443", {"spark.kubernetes.container.image": "wherry:1"}, {})
    with pytest.raises(ConfigError, match=r"wherry\.spark\.kubernetes\.container\.image"):
        check("k8s://https://api:6443", {}, {})


def test_only_plain_local_masters_run_beside_the_driver() -> None:
    assert runs_locally("local")
    assert runs_locally("local[4,2]")
    assert not runs_locally("local-cluster[2,1,1024]")
    assert not runs_locally("spark://local:7077")
