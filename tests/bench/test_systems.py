"""How the processes of a Wherry are named, from command lines as they are."""

from __future__ import annotations

import pytest
from tests.bench.systems import wherry_role

DAEMON = "/venv/bin/python -m wherry.worker.daemon pyspark.worker"


@pytest.mark.parametrize(
    ("command", "parent", "role"),
    [
        ("/venv/bin/python /venv/bin/wherry standalone worker.properties c.json", "keeper", "coordinator"),
        ("/venv/bin/python /venv/bin/wherry distributed worker.properties", "keeper", "coordinator"),
        (f"java org.apache.spark.deploy.SparkSubmit --conf x={DAEMON} pyspark-shell", "wherry", "spark jvm"),
        (DAEMON, "java -cp x org.apache.spark.deploy.SparkSubmit", "lease daemon"),
        (DAEMON, DAEMON, "lease worker"),
        ("/venv/bin/python -m wherry.worker.host --socket /run/h.sock", "wherry", "host of sidecars"),
        ("/venv/bin/python -I -S /x/wherry/worker/host/warden.py /run /run/h.sock", "host", "sidecar warden"),
        ("/envs/filestream/bin/python -m wherry_filestream", "host", "sidecar"),
        ("bin/tally", "host", "sidecar"),
    ],
)
def test_a_process_is_named_by_its_part(command: str, parent: str, role: str) -> None:
    assert wherry_role(command, parent) == role
