"""Coordinates, Ivy's description file, and what Ivy's output means."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from wherry.coordinator.dev import ivy
from wherry.coordinator.dev.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactNotFoundError,
    NetworkUnavailableError,
)
from wherry.coordinator.dev.ivy import Coordinate, explain_failure, parse_coordinate, progress_of, render_ivy_file
from wherry.coordinator.dev.java import Java

KAFKA = Coordinate("org.apache.kafka", "kafka_2.13", "4.3.1")
UNRESOLVED = ["\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found"]


@pytest.mark.parametrize(
    "text",
    ["org.apache.kafka:kafka_2.13:4.3.1", "g:a:1:plugin@tar.gz", "g:a:1@zip", "g:a:1.0-rc_1:sources"],
)
def test_a_coordinate_reads_back_as_it_was_written(text: str) -> None:
    assert str(parse_coordinate(text)) == text


@pytest.mark.parametrize("text", ["", "a:b", "a:b:c:d:e", "a b:c:d", "a:b:c@"])
def test_other_texts_are_no_coordinates(text: str) -> None:
    with pytest.raises(ArtifactError, match="names no Maven artifact"):
        parse_coordinate(text)


def test_a_jar_comes_with_what_it_depends_on() -> None:
    (dependency,) = ElementTree.fromstring(render_ivy_file([KAFKA])).iter("dependency")
    assert dependency.attrib == {
        "org": "org.apache.kafka",
        "name": "kafka_2.13",
        "rev": "4.3.1",
        "conf": "default->default",
    }


def test_an_archive_comes_alone() -> None:
    (dependency,) = ElementTree.fromstring(render_ivy_file([parse_coordinate("g:a:1:plugin@tar.gz")])).iter(
        "dependency"
    )
    assert dependency.get("transitive") == "false"
    assert dependency[0].attrib == {
        "name": "a",
        "type": "tar.gz",
        "ext": "tar.gz",
        "{http://ant.apache.org/ivy/maven}classifier": "plugin",
    }


def test_the_command_uses_a_mirror_when_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    java = Java(Path("/java"), "17")
    folder = Path("/folder")
    monkeypatch.delenv(ivy.SETTINGS_VARIABLE, raising=False)
    assert "-settings" not in ivy.ivy_command(java, folder / "ivy.xml", folder, folder)
    monkeypatch.setenv(ivy.SETTINGS_VARIABLE, "/mirror.xml")
    command = ivy.ivy_command(java, folder / "ivy.xml", folder, folder)
    assert command[command.index("-settings") + 1] == "/mirror.xml"


def test_a_missing_artifact_is_named() -> None:
    error = explain_failure([KAFKA], UNRESOLVED)
    assert isinstance(error, ArtifactNotFoundError)
    assert error.message == "The artifact repositories have no org.apache.kafka:kafka_2.13:9.9.9."


def test_an_unreachable_repository_is_no_missing_artifact() -> None:
    refused = "\tServer access error at url https://host/x.pom (java.net.ConnectException: Connection refused)"
    error = explain_failure([KAFKA], [*UNRESOLVED, refused])
    assert isinstance(error, NetworkUnavailableError)
    assert "cannot be reached (ConnectException)" in error.message
    assert "a second run goes on from there" in error.remedy


def test_a_damaged_download_is_told_as_such() -> None:
    lines = ["[FAILED] g#a;1!a.jar: invalid sha1: expected=00 computed=11", "\t\t:: g#a;1!a.jar"]
    error = explain_failure([KAFKA], lines)
    assert isinstance(error, ArtifactCorruptError)
    assert error.message == "A download of g:a:1 arrived damaged."


def test_any_other_failure_shows_the_last_lines() -> None:
    error = explain_failure([KAFKA], ["java.lang.OutOfMemoryError: Java heap space"])
    assert type(error) is ArtifactError
    assert error.message.endswith("failed: java.lang.OutOfMemoryError: Java heap space.")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("\tfound org.slf4j#slf4j-api;1.7.36 in public", "resolving org.slf4j:slf4j-api:1.7.36"),
        ("downloading https://host/a/b/slf4j-api-1.7.36.jar ...", "downloading slf4j-api-1.7.36.jar"),
        ("\tconfs: [default]", None),
    ],
)
def test_progress_tells_files_not_hosts(line: str, told: str | None) -> None:
    assert progress_of(line) == told
