"""Which of Spark's masters a worker may name, and what each of them needs besides, told before Spark is started.

Reads settings and the environment's names; starts and reaches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wherry.contract.errors import ConfigError

KEY: Final = "wherry.spark.master"
_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_STANDALONE: Final = re.compile(r"spark://[^\s,:/]+:\d+(,[^\s,:/]+:\d+)*|spark://\[[0-9a-fA-F:]+\]:\d+")
_KUBERNETES: Final = re.compile(r"k8s://\S+")
_IMAGES: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")
_YARN_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def runs_locally(master: str) -> bool:
    """Whether a master runs leases beside the driver, without executors of their own."""
    return master == "local" or master.startswith("local[")


def check(master: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Refuse a master that Spark would refuse seconds later and in many lines.

    Args:
        master: Value of `wherry.spark.master`.
        settings: The other settings of Spark, as `spark.X`.
        environ: The process's environment.

    Raises:
        ConfigError: It is none, or lacks what it needs; the sentence says what.
    """
    if _LOCAL.fullmatch(master) or _LOCAL_CLUSTER.fullmatch(master) or _STANDALONE.fullmatch(master):
        return
    if master == "yarn":
        if not any(environ.get(name) for name in _YARN_FOLDERS):
            raise ConfigError(
                f"{KEY}=yarn needs the cluster's client configuration: set the environment variable HADOOP_CONF_DIR "
                "or YARN_CONF_DIR to the folder that holds core-site.xml and yarn-site.xml.",
                key=KEY,
            )
        return
    if _KUBERNETES.fullmatch(master):
        if not any(settings.get(name) for name in _IMAGES):
            raise ConfigError(
                f"{KEY}={master} needs an image for its executors: set wherry.{_IMAGES[0]} to one that holds Spark and "
                "Wherry for the same Python version as this worker's.",
                key=KEY,
            )
        return
    raise ConfigError(
        f"{KEY} is {master!r}, which is no master of Spark: write local[SLOTS,ATTEMPTS] for this machine, "
        "spark://HOST:PORT for a standalone cluster (several Masters parted by commas), yarn, or k8s://HOST:PORT.",
        key=KEY,
    )
