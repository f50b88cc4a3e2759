"""Results for people and machines."""

from __future__ import annotations

from xml.etree import ElementTree

import orjson

from wherry.conformance.report import as_json, as_junit, line, summary
from wherry.conformance.runner import Outcome, Result

RESULTS = [
    Result("l1-x", "", Outcome.PASSED, seconds=0.5),
    Result("l2-y", "A", Outcome.FAILED, "It is wrong.\nIts last output:\nboom"),
    Result("l2-z", "A", Outcome.SKIPPED, "No key is required."),
    Result("l2-u", "A", Outcome.UNEXPECTED, "It passes."),
]


def test_a_line_tells_class_case_and_why() -> None:
    assert line(RESULTS[0]) == "PASSED   l1-x (0.50 s)"
    assert line(RESULTS[1]) == "FAILED   A:l2-y (0.00 s)\n    It is wrong.\n    Its last output:\n    boom"


def test_the_summary_counts_outcomes() -> None:
    assert summary(RESULTS) == "1 passed, 1 failed, 1 skipped, 1 unexpected pass"
    assert summary([]) == "nothing was run"


def test_json_has_every_result() -> None:
    document = orjson.loads(as_json(RESULTS))
    assert document["summary"] == {"passed": 1, "failed": 1, "skipped": 1, "unexpected pass": 1}
    assert document["results"][1]["class"] == "A"


def test_junit_counts_an_unexpected_pass_as_a_failure() -> None:
    suite = ElementTree.fromstring(as_junit(RESULTS))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    failure = suite.find("testcase[@name='l2-y']/failure")
    assert failure is not None
    assert failure.get("message") == "It is wrong."
