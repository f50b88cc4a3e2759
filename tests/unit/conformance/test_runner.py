"""Selection of cases and judgement of results."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wherry.conformance.case import Case, load_cases
from wherry.conformance.failure import Failure, Inapplicable, UsageError
from wherry.conformance.launcher import Command
from wherry.conformance.runner import Outcome, Runner, Selection, Target, _lacking, known_failing
from wherry.conformance.subject import ClassSubject, Subject
from wherry.contract.description import Role


def case(name: str, role: Role | None = Role.SOURCE, *, slow: bool = False) -> Case:
    return Case(name, "It holds.", role, False, frozenset(), False, slow, ())


def runner(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> Runner:
    one = Runner(Target(Command(("none",), Path()), Subject({"A": ClassSubject({})})))

    def attempt(*_: Any) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(one, "_attempt", attempt)
    return one


def outcome(one: Runner, selection: Selection, *cases: Case) -> list[Outcome]:
    return [result.outcome for result in one.run(selection, cases=cases)]


def test_a_case_without_a_failure_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(runner(monkeypatch), Selection(), case("c")) == [Outcome.PASSED]


def test_a_failure_is_told_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    result = next(runner(monkeypatch, Failure("It is wrong.")).run(Selection(), cases=[case("c")]))
    assert result.bad
    assert result.message == "It is wrong."


def test_an_inapplicable_case_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(runner(monkeypatch, Inapplicable("no")), Selection(), case("c")) == [Outcome.SKIPPED]


def test_a_known_failure_is_not_bad_but_an_unexpected_pass_is(monkeypatch: pytest.MonkeyPatch) -> None:
    selection = Selection(known_failing=frozenset({"A:c"}))
    failing = next(runner(monkeypatch, Failure("x")).run(selection, cases=[case("c")]))
    passing = next(runner(monkeypatch).run(selection, cases=[case("c")]))
    assert (failing.outcome, failing.bad) == (Outcome.KNOWN, False)
    assert (passing.outcome, passing.bad) == (Outcome.UNEXPECTED, True)


def test_slow_cases_are_run_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    one = runner(monkeypatch)
    assert outcome(one, Selection(), case("c", slow=True)) == [Outcome.SKIPPED]
    assert outcome(one, Selection(slow=True), case("c", slow=True)) == [Outcome.PASSED]


def test_patterns_choose_by_case_and_by_class() -> None:
    assert Selection(only=["l2-*"]).takes(case("l2-x"), "A")
    assert not Selection(only=["l2-*"]).takes(case("l3-x"), "A")
    assert not Selection(skip=["A:*"]).takes(case("l2-x"), "A")


def test_cases_about_the_plugin_are_run_once_and_others_for_each_class() -> None:
    target = Target(Command(("none",), Path()), Subject({"A": ClassSubject({}), "B": ClassSubject({})}))
    pairs = [(one.name, name) for one, name in target.pairs([case("p", None), case("s")])]
    assert pairs == [("p", ""), ("s", "A"), ("s", "B")]


def test_cases_are_matched_with_the_roles_of_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text(
        "{name: x, version: '1', run: [python, -V], classes: [{class: A, role: source}, {class: B, role: sink}]}"
    )
    (tmp_path / "conformance.yaml").write_text("classes: {A: {config: {}}, B: {config: {}}}")
    pairs = Target.of_directory(tmp_path).pairs(load_cases())
    assert all(name == "B" for one, name in pairs if one.role is Role.SINK)
    assert all(name == "A" for one, name in pairs if one.role is Role.SOURCE)
    assert {name for one, name in pairs if one.any_class} == {"A", "B"}


def test_a_class_tested_in_two_configurations_gets_the_cases_of_its_role_under_each_name(tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text(
        "{name: x, version: '1', run: [python, -V], classes: [{class: A, role: sink}]}"
    )
    (tmp_path / "conformance.yaml").write_text("classes: {A: {config: {}}, other: {class: A, config: {more: 1}}}")
    target = Target.of_directory(tmp_path)
    cases: dict[str, set[str]] = {"A": set(), "other": set()}
    for one, name in target.pairs(load_cases()):
        cases.setdefault(name, set()).add(one.name)
    assert cases["A"] == cases["other"] != set()
    assert not any(name.startswith("l2-read") for name in cases["other"])


def test_a_class_may_be_put_to_some_cases_only(tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text(
        "{name: x, version: '1', run: [python, -V], classes: [{class: A, role: sink}]}"
    )
    (tmp_path / "conformance.yaml").write_text("classes: {A: {config: {}, only: [l3-rows-arrive, 'l3-stop*']}}")
    pairs = Target.of_directory(tmp_path).pairs(load_cases())
    assert {one.name for one, name in pairs if name} == {"l3-rows-arrive", "l3-stop-in-time"}
    assert any(one.name == "l1-describe" for one, _ in pairs)


def test_a_case_runs_on_the_class_that_stands_behind_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []

    class Noting:
        def __init__(self, session: Any, class_name: str, subject: ClassSubject, manifest: Any) -> None:
            ran.append((class_name, subject.config["k"]))
            raise Inapplicable("That is all.")

    monkeypatch.setattr("wherry.conformance.runner.Running", Noting)
    subject = Subject({"A": ClassSubject({"k": "1"}), "other": ClassSubject({"k": "2"}, class_name="A")})
    one = Runner(Target(Command(("none",), Path()), subject))
    assert [one.run_case(case("c"), name).class_name for name in ("A", "other")] == ["A", "other"]
    assert ran == [("A", "1"), ("A", "2")]


def test_a_subject_file_that_names_another_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text(
        "{name: x, version: '1', run: [python, -V], classes: [{class: A, role: source}]}"
    )
    (tmp_path / "conformance.yaml").write_text("classes: {Z: {config: {}}}")
    with pytest.raises(UsageError, match="tests Z, which the manifest doesn't have"):
        Target.of_directory(tmp_path)


def test_comments_and_empty_lines_of_a_list_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("# why\nl2-x # because\n\nA:l3-y\n")
    assert known_failing(tmp_path / "known") == {"l2-x", "A:l3-y"}
    with pytest.raises(UsageError, match="can't be read"):
        known_failing(tmp_path / "none")


@pytest.mark.parametrize(("shares", "applies"), [(None, False), (False, False), (True, True)])
def test_shared_planning_is_asked_only_of_plugins_whose_manifest_says_so(shares: bool | None, applies: bool) -> None:
    manifest = None if shares is None else SimpleNamespace(shares_planning=shares)
    running: Any = SimpleNamespace(description=None, subject=None, manifest=manifest)
    wanted = Case("c", "It holds.", None, True, frozenset({"shared_planning"}), True, False, ())
    assert (_lacking(wanted, running) == "") is applies
