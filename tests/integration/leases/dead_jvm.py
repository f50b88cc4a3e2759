"""Kills Spark's JVM under a running lease, and waits until a new one has taken over. Prints `went on`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from bench_of_parts import Bench, log_plan

from wherry.coordinator.spark import SparkEngine
from wherry.coordinator.sparksettings import SparkSettings


def main(directory: Path) -> None:
    bench = Bench(directory / "run")
    engine = SparkEngine(
        SparkSettings("local[4,4]", run_directory=directory), bench.runner.post, entry="fake_lease:run"
    )
    bench.start(engine)
    engine.start()
    bench.until(lambda: engine.state == "up", 60)
    bench.put("log", log_plan())
    bench.until(lambda: bench.reached("log", '{"log":0}') > 10, 60)
    jvm = engine._context._gateway.proc.pid
    os.kill(jvm, signal.SIGKILL)
    bench.until(lambda: engine.state == "failed", 60)
    time.sleep(0.5)
    shown = bench.runner.ask(lambda machine: machine.shown("log"))
    assert shown is not None
    assert shown.tasks[0][1] == "", f"the task is not to blame: {shown}"
    at_kill = bench.reached("log", '{"log":0}')
    bench.until(lambda: bench.reached("log", '{"log":0}') > at_kill + 5, 60)
    print("went on")
    bench.close()
    engine.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
