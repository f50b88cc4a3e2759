"""The peers' own connectors: `java/` compiled for Kafka Connect, `plugin/` for Wherry."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from wherry.coordinator.dev.jars import CONNECT, class_path, ensure_jars
from wherry.coordinator.dev.java import find_java

SOURCES = Path(__file__).with_name("java")
PLUGIN = Path(__file__).with_name("plugin")
RELEASE = "17"
COMPILE_TIMEOUT_S = 120.0
_SERVICES = {
    "org.apache.kafka.connect.source.SourceConnector": "wherry.peer.RecordsSource",
    "org.apache.kafka.connect.sink.SinkConnector": "wherry.peer.RecordsSink",
    "org.apache.kafka.connect.transforms.Transformation": "wherry.peer.Repartition",
}


def built(folder: Path) -> Path:
    """Compiles the Java connectors into a folder of plugins and returns it."""
    classes, plugins = folder / "classes", folder / "plugins"
    (plugins / "records").mkdir(parents=True, exist_ok=True)
    compiler = find_java().executable.with_name("javac")
    command = [str(compiler), "--release", RELEASE, "-nowarn", "-d", str(classes), "-cp"]
    command += [class_path(ensure_jars(CONNECT)), *map(str, sorted(SOURCES.glob("*.java")))]
    made = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    assert made.returncode == 0, f"the peers' connectors do not compile:\n{made.stderr}"
    with zipfile.ZipFile(plugins / "records" / "records.jar", "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))
        for service, name in _SERVICES.items():
            jar.writestr(f"META-INF/services/{service}", f"{name}\n")
    return plugins
