"""Case files."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.conformance.case import VERBS, load_cases
from wherry.conformance.failure import UsageError
from wherry.contract.description import Role


def write(folder: Path, text: str) -> Path:
    (folder / "cases.yaml").write_text(text)
    return folder


def test_every_shipped_case_loads_and_says_what_it_requires() -> None:
    cases = load_cases()
    assert len(cases) > 50
    assert all(case.says.endswith(".") and case.steps for case in cases)


def test_every_verb_is_used_by_a_case() -> None:
    used = {step.verb for case in load_cases() for step in case.steps}
    assert set(VERBS) == used


def test_levels_fit_roles() -> None:
    for case in load_cases():
        level = case.name.partition("-")[0]
        assert level in {"l1", "l2", "l3", "l4"}
        assert (level == "l1") == (case.role is None and not case.any_class), case.name
        assert (level == "l3") == (case.role is Role.SINK), case.name
        assert (level == "l4") == (case.role is Role.TRANSFORM), case.name


def test_a_scalar_is_the_first_argument_of_a_verb(tmp_path: Path) -> None:
    folder = write(tmp_path, "[{case: c, says: s, role: source, steps: [read_all: again]}]")
    assert load_cases(folder)[0].steps[0].arguments == {"name": "again"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "must be a list of cases"),
        ("[{says: x}]", "a case must be a mapping"),
        (
            "[{case: c, role: king, steps: []}]",
            "the role of c must be plugin, source, sink, transform or any, not 'king'",
        ),
        ("[{case: c, role: sink, steps: [], colour: red}]", "c has no member colour"),
        ("[{case: c, role: sink, needs: [luck], steps: []}]", "c needs luck"),
        ("[{case: c, role: sink, steps: [dance]}]", "c has the step 'dance'"),
        (
            "[{case: c, role: sink, steps: [flush: {colour: red}]}]",
            "flush: got an unexpected keyword argument 'colour'",
        ),
        ("[{case: c, role: sink, steps: [healthy: 1]}]", "healthy takes no argument"),
        ("[{case: c, role: sink, steps: []}, {case: c, role: sink, steps: []}]", "There are two cases c"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        load_cases(write(tmp_path, text))
