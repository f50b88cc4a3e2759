"""Spark's Python daemon with everything a lease needs loaded before it forks: `spark.python.daemon.module`.

A worker that imports for itself costs three times the memory and four times the processor time of a forked copy of
this. Nothing here may start a thread or open a channel, because neither lives through a fork; gRPC in particular is
only imported. Objects are frozen out of the collector's sight, so that collecting in a worker does not copy the pages
they are on.
"""

from __future__ import annotations

import gc
import importlib
import os
from typing import Final

PRELOADED: Final = (
    "grpc",
    "grpc_health.v1.health_pb2_grpc",
    "orjson",
    "pandas",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.worker.mapinarrow",
    "confluent_kafka",
    "wherry.contract.client",
    "wherry.worker.lease",
)


def preload() -> list[str]:
    """Import what leases need; return what could not be imported, which a worker will then tell by itself."""
    missing = []
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    gc.collect()
    gc.freeze()
    return missing


def main() -> None:
    """Preload, then be Spark's daemon."""
    # Arrow's own pool gives memory back late; a worker holds a few batches at most, and the system's pool gives all.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    preload()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
