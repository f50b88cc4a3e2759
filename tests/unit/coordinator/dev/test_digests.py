"""Manifests: written, read, and compared with files."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.dev.digests import check_digests, check_sizes, digest_files, parse_manifest, render_manifest
from wherry.coordinator.dev.errors import ArtifactCorruptError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jar").write_bytes(b"abc")
    (tmp_path / "b c.jar").write_bytes(b"")
    return tmp_path


def test_a_manifest_is_lines_of_digest_size_and_name(folder: Path) -> None:
    text = render_manifest(digest_files(folder.iterdir()))
    assert text.splitlines() == [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3 a.jar",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 b c.jar",
    ]


def test_a_manifest_reads_back(folder: Path) -> None:
    manifest = digest_files(folder.iterdir())
    assert parse_manifest("# comment\n\n" + render_manifest(manifest), "m") == manifest


def test_a_broken_line_of_a_manifest_is_named() -> None:
    with pytest.raises(ArtifactCorruptError, match="Line 2 of the manifest is not"):
        parse_manifest("# fine\nnonsense\n", "the manifest")


def test_untouched_files_pass(folder: Path) -> None:
    check_digests(folder, digest_files(folder.iterdir()))


def test_a_missing_file_is_named(folder: Path) -> None:
    manifest = digest_files(folder.iterdir())
    (folder / "a.jar").unlink()
    with pytest.raises(ArtifactCorruptError, match=r"a\.jar is missing"):
        check_sizes(folder, manifest)


def test_a_cut_file_is_named_with_both_sizes(folder: Path) -> None:
    manifest = digest_files(folder.iterdir())
    (folder / "a.jar").write_bytes(b"ab")
    with pytest.raises(ArtifactCorruptError, match=r"a\.jar has 2 bytes, not 3"):
        check_sizes(folder, manifest)


def test_changed_content_of_the_same_size_is_found_by_digest_alone(folder: Path) -> None:
    manifest = digest_files(folder.iterdir())
    (folder / "a.jar").write_bytes(b"abd")
    check_sizes(folder, manifest)
    with pytest.raises(ArtifactCorruptError, match=r"a\.jar has SHA-256 a52d159f262b…, not ba7816bf8f01…"):
        check_digests(folder, manifest)
