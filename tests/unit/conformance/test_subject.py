"""Subject files, variables and feeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.conformance.failure import Failure, Inapplicable, UsageError
from wherry.conformance.subject import ClassSubject, Subject, Variables, delivered_rows, feed


def load(folder: Path, text: str) -> Subject:
    path = folder / "conformance.yaml"
    path.write_text(text)
    return Subject.load(path)


def test_values_of_a_configuration_become_texts(tmp_path: Path) -> None:
    subject = load(tmp_path, "classes: {A: {config: {count: 3, quick: true, topic: t}, rows: 3}}")
    assert subject.classes["A"].config == {"count": "3", "quick": "true", "topic": "t"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "one member, classes"),
        ("classes: {A: {}}", "A must be a mapping with config"),
        ("classes: {A: {config: {}, colour: red}}", "A has no member colour"),
        ("classes: {A: {config: {}, value: {kind: song, sample: x}}}", "A.value must be a mapping with kind"),
        ("classes: {A: {config: {}, value: {kind: struct, sample: {a: 1}}}}", "A.value.fields must name"),
        ("classes: {A: {config: {}, skip: [x]}}", "A.skip must map cases to reasons"),
        ("classes: {A: {config: {}, only: l3-x}}", "A.only must be a list"),
        ("{", "isn't YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        load(tmp_path, text)


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        Subject.load(tmp_path / "conformance.yaml")


def test_variables_are_filled_in_depth_and_keep_their_type() -> None:
    variables = Variables({"scratch": "/s"})
    assert variables.fill({"a": ["$scratch/x", "$n"], "b": 1}, n=7) == {"a": ["/s/x", 7], "b": 1}


def test_an_unknown_variable_is_refused() -> None:
    with pytest.raises(UsageError, match=r"There is no variable \$colour; there are scratch"):
        Variables({"scratch": "/s"}).fill("$colour")


def test_an_absent_environment_variable_makes_a_class_inapplicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WHERRY_ABSENT", raising=False)
    with pytest.raises(Inapplicable, match="WHERRY_ABSENT isn't set"):
        Variables({}).fill("postgres://$env.WHERRY_ABSENT/x")


def test_a_feed_writes_lines(tmp_path: Path) -> None:
    subject = ClassSubject({}, feed={"files": [{"path": "$scratch/in/a", "header": "id\n", "lines": 2, "line": "$n"}]})
    feed(subject, Variables({"scratch": str(tmp_path)}))
    assert (tmp_path / "in" / "a").read_text() == "id\n0\n1\n"


def test_delivered_rows_are_the_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a\nb\n")
    variables = Variables({"scratch": str(tmp_path)})
    assert delivered_rows(ClassSubject({}, verify={"file": "$scratch/out"}), variables) == 2
    with pytest.raises(Failure, match="can't be read"):
        delivered_rows(ClassSubject({}, verify={"file": "$scratch/none"}), variables)
