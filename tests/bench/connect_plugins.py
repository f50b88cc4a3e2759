"""Plugins that the systems are measured with: fetched, compiled from the few lines beside this module, or built."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from tests.bench.processes import BenchError

from wherry.coordinator.dev.jars import CONNECT, KAFKA_VERSION, class_path, ensure_jars, jar_set

DEBEZIUM_VERSION = "3.6.0.Final"
DEBEZIUM_JDBC = jar_set(f"io.debezium:debezium-connector-jdbc:{DEBEZIUM_VERSION}:plugin@tar.gz", name="debezium-jdbc")
MIRROR_MAKER = jar_set(f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}")
AVRO_CONVERTER = jar_set("io.apicurio:apicurio-registry-utils-converter:2.6.13.Final")
"""Confluent's converter is in no public Maven repository but its own; this one reads what that one writes."""

SOURCE = Path(__file__).with_name("connect") / "DiscardSink.java"
SERVICES = ("org.apache.kafka.connect.sink.SinkConnector", "DiscardSink")
COMPILE_SECONDS = 60.0
BUILD_SECONDS = 600.0


def build_tally(plugin_path: Path) -> None:
    """Builds Wherry's sink that does nothing where it is part of the plugins measured and not built yet."""
    folder = plugin_path / "tally"
    if not folder.is_dir() or (folder / "bin" / "tally").exists():
        return
    argv = ["go", "build", "-o", "bin/tally", "."]
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    except FileNotFoundError:
        raise BenchError("Flows that discard need Go, to build the tally plugin.") from None
    if done.returncode:
        raise BenchError(f"The tally plugin does not build: {done.stderr[:600]}")


def discard_sink(directory: Path) -> Path:
    """Compiles the sink that does nothing into a plugin folder; gives the folder."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise BenchError("Flows that discard need javac: install a JDK, not only a Java runtime.")
    plugin = directory / "connect-plugins" / "discard"
    if plugin.exists():
        return plugin.parent
    plugin.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=directory) as classes:
        argv = [compiler, "--release", "17", "-cp", class_path(ensure_jars(CONNECT)), "-d", classes, str(SOURCE)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
        if done.returncode:
            raise BenchError(f"{SOURCE.name} does not compile: {done.stderr[:600]}")
        with zipfile.ZipFile(plugin / "discard.jar", "w") as jar:
            jar.writestr(f"META-INF/services/{SERVICES[0]}", SERVICES[1])
            for file in Path(classes).iterdir():
                jar.write(file, file.name)
    return plugin.parent
