"""Spark's Python daemon with everything a lease needs loaded before it forks: `spark.python.daemon.module`.

A worker that imports for itself costs three times the memory and four times the processor time of a forked copy of
this. Nothing here may start a thread or open a channel, because neither lives through a fork; gRPC in particular is
only imported. Objects are frozen out of the collector's sight, so that collecting in a worker does not copy the pages
they are on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import zipimport
from typing import Final

from wherry.contract.memory import keep_pandas_out

PRELOADED: Final = (
    # First, because it settles how gRPC works.
    "wherry.contract",
    "grpc",
    # Loaded by grpc itself only when the first channel is made.
    "grpc._channel",
    "grpc.experimental",
    "grpc_health.v1.health_pb2_grpc",
    "orjson",
    "pyarrow",
    "pyspark.worker",
    "confluent_kafka",
    "wherry.contract.client",
    "wherry.worker.lease",
)


def preload() -> list[str]:
    """Import what leases need; return what could not be imported, which a worker will then tell by itself."""
    missing = []
    with contextlib.suppress(ImportError):  # told by whoever needs Arrow
        keep_pandas_out()
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    forget_archives()
    gc.collect()
    gc.freeze()
    return missing


def forget_archives() -> None:
    """Drop importers of zip files, which Spark puts on the path together with its main jar.

    Every worker begins by invalidating import caches, and Python 3.11's zip importer takes that for a reason to read
    its archive's directory again: 27 MB in each worker that no other shares. Nothing is imported from jars; from zips
    still is, by an importer made when it is needed.
    """
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(".jar")]
    for entry, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[entry]


def main() -> None:
    """Preload, then be Spark's daemon."""
    # Of Arrow's pools this one gives most memory back at the same speed (measured after a fork: 47 MB against 58 MB).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    preload()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
