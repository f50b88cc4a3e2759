"""Names of modes, and what they do in a call."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wherry.contract.errors import AuthError, ConfigError, ErrorClass
from wherry_hostile.modes import CALLS, MODES, Wishes, checked
from wherry_hostile.settings import SINK_CLASS, SOURCE_CLASS, parse, validate

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_every_mode_is_in_the_readme() -> None:
    plain = [mode for mode in MODES if mode.rpartition("-")[2] not in CALLS]
    assert [mode for mode in plain if f"`{mode}`" not in README] == []
    assert [
        kind for mode in MODES for kind in [mode.partition("-")[0]] if f"{kind}-" not in README and mode not in README
    ] == []
    assert [call for call in CALLS if call not in README] == []


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid value dance for configuration misbehave"):
        checked(["leak", " dance "])


def test_nothing_happens_unless_it_was_asked_for() -> None:
    Wishes(checked(["hang-plan"])).at("read")
    assert not Wishes().midway(1000)


def test_an_error_is_of_the_class_asked_for() -> None:
    with pytest.raises(AuthError, match="asked to fail at plan"):
        Wishes(checked(["error-plan"]), error_class=ErrorClass.AUTH).at("plan")


def test_a_slow_call_takes_its_delay() -> None:
    begin = time.monotonic()
    Wishes(checked(["slow-plan"]), delay_ms=50).at("plan")
    assert time.monotonic() - begin >= 0.05


def test_midway_begins_after_so_many_rows() -> None:
    wishes = Wishes(checked(["end-midway"]), after_rows=10)
    assert not wishes.midway(9)
    assert wishes.midway(10)


def test_an_exception_of_no_class_is_raised_midway() -> None:
    with pytest.raises(RuntimeError, match="row 3"):
        Wishes(checked(["raise-midway"]), after_rows=3).midway(3)


def test_a_configuration_is_parsed_with_what_the_command_line_asks_for() -> None:
    settings = parse(SOURCE_CLASS, {"topic": "t", "misbehave": "leak, spin"}, frozenset({"no-marks"}))
    assert settings.wishes.modes == {"leak", "spin", "no-marks"}
    assert (settings.topic, settings.count) == ("t", 100)


def test_wrong_values_are_told_by_key() -> None:
    found = validate(SINK_CLASS, {"misbehave": "dance", "error.class": "LUCK", "after.rows": "-1"})
    assert set(found) == {"misbehave", "error.class", "after.rows"}
