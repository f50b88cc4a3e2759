"""The facade for pytest."""

from __future__ import annotations

from pathlib import Path

from wherry.conformance.suite import conformance_suite


def test_a_suite_has_a_test_for_each_case_and_class(tmp_path: Path) -> None:
    (tmp_path / "sidecar.yaml").write_text(
        "{name: x, version: '1', run: [python, -V], classes: [{class: A, role: source}]}"
    )
    (tmp_path / "conformance.yaml").write_text("classes: {A: {config: {}}}")
    suite = conformance_suite(tmp_path, skip=("l1-sigterm",))
    marks = suite.test_case.pytestmark  # type: ignore[attr-defined]
    assert "plugin-l1-describe" in marks[0].kwargs["ids"]
    assert "A-l2-plan" in marks[0].kwargs["ids"]
    assert "plugin-l1-sigterm" not in marks[0].kwargs["ids"]
