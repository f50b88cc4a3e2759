"""Finding Java and understanding what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.dev.errors import JavaError
from wherry.coordinator.dev.java import find_java, major_version, parse_release_file, parse_version_output


def java_home(folder: Path, version: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.touch(mode=0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return {"JAVA_HOME": str(folder), "PATH": ""}


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25), ("11.0.2+9", 11)]
)
def test_the_feature_release_is_read_from_every_style_of_version(version: str, major: int) -> None:
    assert major_version(version) == major


def test_a_text_without_a_number_is_no_version() -> None:
    with pytest.raises(ValueError, match="'next' is no Java version"):
        major_version("next")


def test_the_version_is_found_in_what_java_prints() -> None:
    text = 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment'
    assert parse_version_output(text) == "17.0.15"


def test_output_of_another_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no version in 'not java'"):
        parse_version_output("not java\n")


def test_a_release_file_without_a_version_tells_none() -> None:
    assert parse_release_file('IMPLEMENTOR="Someone"\n') is None


def test_java_home_is_preferred(tmp_path: Path) -> None:
    java = find_java(java_home(tmp_path, "21.0.1"))
    assert (java.executable, java.version, java.major) == (tmp_path / "bin" / "java", "21.0.1", 21)


def test_an_old_java_is_refused_with_its_version_and_place(tmp_path: Path) -> None:
    with pytest.raises(JavaError) as refused:
        find_java(java_home(tmp_path, "11.0.22"))
    assert refused.value.message == (
        f"The Java at {tmp_path}/bin/java is version 11.0.22, but Kafka needs 17 or newer."
    )
    assert "JAVA_HOME" in refused.value.remedy


def test_a_java_home_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=f"JAVA_HOME is {tmp_path}, but there is no program {tmp_path}/bin/java"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_no_java_anywhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="No Java was found"):
        find_java({"PATH": str(tmp_path)})
