"""The cache of jars: where it is, and that changed files are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wherry.contract.cache import CACHE_VARIABLE
from wherry.coordinator.dev import jars
from wherry.coordinator.dev.digests import digest_files, render_manifest
from wherry.coordinator.dev.errors import ArtifactCorruptError, ArtifactError

SET = jars.jar_set("org.example:library:1.0")


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the set, as `_fetch` leaves it."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    folder = jars.jar_folder(SET)
    folder.mkdir(parents=True)
    (folder / "library-1.0.jar").write_bytes(b"library")
    (folder / "other-2.0.jar").write_bytes(b"other")
    (folder / "manifest.txt").write_text(render_manifest(digest_files(folder.glob("*.jar"))))
    return folder


def test_a_cached_set_is_used_without_fetching(cached: Path) -> None:
    assert jars.ensure_jars(SET) == [cached / "library-1.0.jar", cached / "other-2.0.jar"]


def test_content_changed_after_a_use_is_found_on_the_next(cached: Path) -> None:
    jars.ensure_jars(SET)
    (cached / "other-2.0.jar").write_bytes(b"0ther")
    with pytest.raises(ArtifactCorruptError) as found:
        jars.ensure_jars(SET)
    assert str(cached / "other-2.0.jar") in found.value.message
    assert found.value.remedy == f"Delete the folder {cached} and start again: it is fetched anew."


def test_a_change_that_hides_its_time_is_found_too(cached: Path) -> None:
    jars.ensure_jars(SET)
    jar = cached / "other-2.0.jar"
    before = jar.stat()
    jar.write_bytes(b"0ther")
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ArtifactCorruptError):
        jars.ensure_jars(SET)


def test_an_unchanged_set_is_hashed_once(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.ensure_jars(SET)
    monkeypatch.setattr(jars, "check_digests", lambda *_: pytest.fail("hashed again"))
    jars.ensure_jars(SET)


def test_jars_of_a_plugin_get_a_folder_of_their_own(cached: Path) -> None:
    plugins = jars.ensure_plugin(SET)
    assert sorted(path.relative_to(plugins).as_posix() for path in plugins.rglob("*.jar")) == [
        "library/library-1.0.jar",
        "library/other-2.0.jar",
    ]


def test_sets_of_different_artifacts_never_share_a_folder() -> None:
    one, two = jars.jar_set("g:a:1", "g:b:1", name="x"), jars.jar_set("g:a:1", "g:c:1", name="x")
    assert jars.jar_folder(one) != jars.jar_folder(two)


def test_a_set_of_nothing_is_refused() -> None:
    with pytest.raises(ArtifactError, match="names no artifact"):
        jars.jar_set()


@pytest.mark.parametrize("standard", jars.STANDARD_SETS, ids=lambda each: each.name)
def test_the_package_carries_a_manifest_with_every_artifact_of_a_pinned_set(standard: jars.JarSet) -> None:
    manifest = jars.pinned_manifest(standard)
    assert {f"{each.artifact}-{each.version}.jar" for each in standard.coordinates} <= set(manifest)


def test_a_class_path_holds_jars_only_and_keeps_their_order() -> None:
    assert jars.class_path([Path("/b.jar"), Path("/a.jar"), Path("/c.tar.gz")]) == "/b.jar:/a.jar"
