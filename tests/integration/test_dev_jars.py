"""Fetching jars with the real Ivy, from a Maven repository in a folder instead of the network."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wherry.contract.cache import CACHE_VARIABLE
from wherry.coordinator.dev import jars
from wherry.coordinator.dev.errors import ArtifactCorruptError, ArtifactNotFoundError, NetworkUnavailableError
from wherry.coordinator.dev.ivy import SETTINGS_VARIABLE

Publish = Callable[..., Path]


def settings_file(path: Path, root: str) -> Path:
    path.write_text(
        "<ivysettings><settings defaultResolver='only'/><resolvers>"
        f"<ibiblio name='only' m2compatible='true' root='{root}'/>"
        "</resolvers></ivysettings>"
    )
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Puts artifacts of `org.example` 1.0 into a repository in a folder: `publish("library", needs=["other"])`."""
    repository = tmp_path / "repository"
    monkeypatch.setenv(SETTINGS_VARIABLE, str(settings_file(tmp_path / "settings.xml", repository.as_uri())))

    def put(name: str, *, content: bytes = b"", ending: str = ".jar", needs: tuple[str, ...] = ()) -> Path:
        folder = repository / "org/example" / name / "1.0"
        folder.mkdir(parents=True)
        dependencies = "".join(
            f"<dependency><groupId>org.example</groupId><artifactId>{need}</artifactId><version>1.0</version></dependency>"
            for need in needs
        )
        (folder / f"{name}-1.0.pom").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
            f"<artifactId>{name}</artifactId><version>1.0</version><dependencies>{dependencies}</dependencies></project>"
        )
        file = folder / f"{name}-1.0{ending}"
        file.write_bytes(content or empty_jar())
        return file

    return put


def empty_jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return content.getvalue()


def plugin_archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("plugin/plugin.jar"))
    return content.getvalue()


def test_an_artifact_comes_with_what_it_needs_and_is_then_cached(
    publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("other")
    publish("library", needs=("other",))
    wanted = jars.jar_set("org.example:library:1.0")
    told: list[str] = []
    files = jars.ensure_jars(wanted, told.append)
    assert [file.name for file in files] == ["library-1.0.jar", "other-1.0.jar"]
    assert "resolving org.example:other:1.0" in told
    monkeypatch.setenv(SETTINGS_VARIABLE, "/none")
    assert jars.ensure_jars(wanted) == files


def test_an_archive_is_unpacked_into_a_plugin_folder(publish: Publish) -> None:
    publish("connector", content=plugin_archive(), ending="-plugin.tar.gz", needs=("not-published",))
    folder = jars.ensure_plugin(jars.jar_set("org.example:connector:1.0:plugin@tar.gz"))
    assert (folder / "plugin" / "plugin.jar").is_file()


def test_an_archive_that_is_none_leaves_no_plugin_folder(publish: Publish, cache: Path) -> None:
    publish("connector", content=b"no archive", ending="-plugin.tar.gz")
    with pytest.raises(ArtifactCorruptError, match="cannot be unpacked"):
        jars.ensure_plugin(jars.jar_set("org.example:connector:1.0:plugin@tar.gz"))
    assert [path.name for path in (cache / "plugins").iterdir()] == [".lock"]


def test_an_artifact_that_is_nowhere_is_named_and_leaves_nothing(publish: Publish, cache: Path) -> None:
    publish("other")
    with pytest.raises(ArtifactNotFoundError, match=r"have no org\.example:library:1\.0"):
        jars.ensure_jars(jars.jar_set("org.example:library:1.0"))
    assert [path.name for path in (cache / "jars").iterdir()] == [".lock"]


def test_a_missing_dependency_is_named(publish: Publish) -> None:
    publish("library", needs=("other",))
    with pytest.raises(ArtifactNotFoundError, match=r"have no org\.example:other:1\.0"):
        jars.ensure_jars(jars.jar_set("org.example:library:1.0"))


def test_an_unreachable_repository_is_told_as_such(
    free_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_file(tmp_path / "settings.xml", f"http://127.0.0.1:{free_port}/")
    monkeypatch.setenv(SETTINGS_VARIABLE, str(settings))
    with pytest.raises(NetworkUnavailableError, match="The artifact repositories cannot be reached"):
        jars.ensure_jars(jars.jar_set("org.example:library:1.0"))


def test_a_download_that_fails_its_checksum_is_refused(publish: Publish) -> None:
    file = publish("library")
    file.with_name(file.name + ".sha1").write_text(hashlib.sha1(b"something else").hexdigest())
    with pytest.raises(ArtifactCorruptError, match=r"org\.example:library:1\.0 arrived damaged"):
        jars.ensure_jars(jars.jar_set("org.example:library:1.0"))


def test_a_pinned_set_refuses_other_files_than_those_it_was_pinned_to(publish: Publish, cache: Path) -> None:
    publish("library")
    pinned = jars.JarSet("broker", jars.KAFKA_VERSION, jars.jar_set("org.example:library:1.0").coordinates, True)
    with pytest.raises(
        ArtifactCorruptError, match="not those that Wherry was tested with; they differ in HdrHistogram"
    ):
        jars.ensure_jars(pinned)
    assert not jars.is_fetched(pinned)
    assert not (cache / "ivy").exists()


def test_what_a_killed_process_left_is_swept(publish: Publish, cache: Path) -> None:
    publish("library")
    leftover = cache / "jars" / ".partial-abc"
    leftover.mkdir(parents=True)
    jars.ensure_jars(jars.jar_set("org.example:library:1.0"))
    assert not leftover.exists()


def test_two_processes_fetch_a_set_once(publish: Publish, tmp_path: Path) -> None:
    publish("library")
    script = tmp_path / "fetch.py"
    script.write_text(
        "from wherry.coordinator.dev import jars\n"
        "told = []\n"
        "jars.ensure_jars(jars.jar_set('org.example:library:1.0'), told.append)\n"
        "print(any(line.startswith('downloading') for line in told))\n"
    )
    running = [subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(process.communicate(timeout=60)[0].strip() for process in running) == ["False", "True"]
