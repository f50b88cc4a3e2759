"""The broker's settings and storage, as far as they need no broker."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from wherry.contract.cache import CACHE_VARIABLE
from wherry.coordinator.config import properties
from wherry.coordinator.dev import kafka
from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.jars import KAFKA_VERSION
from wherry.coordinator.dev.java import Java

JAVA = Java(Path("/java"), "17.0.1")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / f"kafka-{KAFKA_VERSION}"


def test_clients_are_told_the_address_the_broker_listens_on() -> None:
    settings = kafka.broker_settings("127.0.0.1", 1111, 2222, Path("/data"))
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1111"
    assert settings["listeners"].startswith(settings["advertised.listeners"] + ",")
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:2222"


def test_everything_works_with_a_single_replica() -> None:
    settings = kafka.broker_settings("127.0.0.1", 1, 2, Path("/data"))
    replicated = {key: value for key, value in settings.items() if key.endswith(("replication.factor", ".isr"))}
    assert len(replicated) >= 6
    assert set(replicated.values()) == {"1"}


def test_storage_is_formatted_from_memory_once_the_tool_has_run(cache: Path, tmp_path: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "bootstrap.checkpoint").write_bytes(b"remembered")
    kafka.format_storage(tmp_path / "data", tmp_path / "unused", JAVA, "")
    identity = properties.load(tmp_path / "data" / "meta.properties")
    assert (tmp_path / "data" / "bootstrap.checkpoint").read_bytes() == b"remembered"
    assert (identity["version"], identity["node.id"]) == ("1", "1")
    assert len(base64.urlsafe_b64decode(identity["cluster.id"] + "==")) == 16


def test_formatted_storage_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=old\n")
    kafka.format_storage(tmp_path, tmp_path / "unused", JAVA, "")
    assert (tmp_path / "meta.properties").read_text() == "cluster.id=old\n"


def test_the_first_broker_writes_the_class_archive_and_later_ones_use_it(cache: Path) -> None:
    first = kafka.ClassArchive(JAVA, "a.jar")
    scratch = Path(first.jvm_options[0].removeprefix("-XX:ArchiveClassesAtExit="))
    scratch.write_bytes(b"classes")
    first.adopt()
    (archive,) = cache.iterdir()
    assert kafka.ClassArchive(JAVA, "a.jar").jvm_options[0] == f"-XX:SharedArchiveFile={archive}"


def test_another_java_or_other_jars_get_an_archive_of_their_own(cache: Path) -> None:
    first = kafka.ClassArchive(JAVA, "a.jar")
    Path(first.jvm_options[0].removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")
    first.adopt()
    for java, classes in ((Java(Path("/java"), "21.0.1"), "a.jar"), (JAVA, "b.jar")):
        assert kafka.ClassArchive(java, classes).jvm_options[0].startswith("-XX:ArchiveClassesAtExit=")


def test_a_broker_that_was_killed_leaves_no_archive_to_adopt(cache: Path) -> None:
    archive = kafka.ClassArchive(JAVA, "a.jar")
    assert archive.jvm_options
    archive.adopt()
    assert not list(cache.iterdir())


def test_a_data_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServerStartError, match=f"The folder {tmp_path}/file/data for kafka cannot be made"):
        kafka.EmbeddedKafka(data_dir=tmp_path / "file" / "data")


def test_archives_of_brokers_that_were_killed_long_ago_are_swept(cache: Path) -> None:
    old, young = (cache / f"classes-x.jsa.{name}" for name in ("old", "young"))
    archive = kafka.ClassArchive(JAVA, "a.jar")
    Path(archive.jvm_options[0].removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    archive.adopt()
    assert young.exists()
    assert not old.exists()
