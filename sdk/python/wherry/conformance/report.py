"""Results for people and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

import orjson

from wherry.conformance.runner import Outcome, Result


def line(result: Result) -> str:
    """Returns one line for a person; a failure's text follows indented."""
    name = f"{result.class_name}:{result.case}" if result.class_name else result.case
    told = f"{result.outcome.value.upper():<8} {name} ({result.seconds:.2f} s)"
    if not result.message or result.outcome is Outcome.PASSED:
        return told
    return told + "".join(f"\n    {text}" for text in result.message.splitlines())


def summary(results: Sequence[Result]) -> str:
    """Returns the counts in one line."""
    counts = Counter(result.outcome for result in results)
    return (
        ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]) or "nothing was run"
    )


def as_json(results: Sequence[Result]) -> bytes:
    """Returns the results as a JSON document."""
    return orjson.dumps(
        {
            "summary": {
                outcome.value: count for outcome, count in Counter(result.outcome for result in results).items()
            },
            "results": [
                {
                    "case": result.case,
                    "class": result.class_name,
                    "outcome": result.outcome.value,
                    "message": result.message,
                    "seconds": result.seconds,
                }
                for result in results
            ],
        },
        option=orjson.OPT_INDENT_2,
    )


def as_junit(results: Sequence[Result]) -> bytes:
    """Returns the results as a JUnit document."""
    bad = sum(result.bad for result in results)
    skipped = sum(result.outcome in (Outcome.SKIPPED, Outcome.KNOWN) for result in results)
    suite = ElementTree.Element(
        "testsuite", name="wherry-conformance", tests=str(len(results)), failures=str(bad), skipped=str(skipped)
    )
    for result in results:
        test = ElementTree.SubElement(
            suite, "testcase", classname=result.class_name or "plugin", name=result.case, time=f"{result.seconds:.3f}"
        )
        if result.bad:
            ElementTree.SubElement(test, "failure", message=result.message.partition("\n")[0]).text = result.message
        elif result.outcome is not Outcome.PASSED:
            ElementTree.SubElement(test, "skipped", message=result.message.partition("\n")[0])
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
