"""The command `wherry-conformance`: runs the cases on one plugin.

Exit codes: 0 everything passed, 1 a case failed (or passed though it is listed as failing), 2 a wrong argument or file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wherry.conformance.case import load_cases
from wherry.conformance.failure import UsageError
from wherry.conformance.launcher import command_from
from wherry.conformance.report import as_json, as_junit, line, summary
from wherry.conformance.runner import Result, Runner, Selection, Target, known_failing
from wherry.conformance.subject import SUBJECT_NAME, Subject
from wherry.contract.errors import ConfigError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments; None means the process's own.

    Returns:
        The exit code.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if "--" in given:
        command = given[given.index("--") + 1 :]
        given = given[: given.index("--")]
    arguments = _parser().parse_args(given)
    try:
        if arguments.list:
            return _list()
        selection = Selection(
            arguments.case,
            arguments.skip,
            known_failing(arguments.known_failing) if arguments.known_failing else frozenset(),
            arguments.slow,
        )
        return _run(_target(arguments, command), selection, arguments)
    except (UsageError, ConfigError) as error:
        sys.stderr.write(f"wherry-conformance: {error}\n")
        return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wherry-conformance",
        description="Checks that a sidecar, in whatever language, keeps Wherry's contract.",
        epilog=f"How the classes are put to the test is told in {SUBJECT_NAME} in the plugin's folder.",
    )
    parser.add_argument("--manifest", type=Path, metavar="DIR", help="the plugin's folder, with its sidecar.yaml")
    parser.add_argument("--subject", type=Path, metavar="FILE", help=f"instead of the folder's {SUBJECT_NAME}")
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only such cases, as l2-* or Class:*"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="PATTERN", help="leave such cases out")
    parser.add_argument("--known-failing", type=Path, metavar="FILE", help="names of cases that fail, one a line")
    parser.add_argument("--slow", action="store_true", help="run slow cases too")
    parser.add_argument("--python", metavar="PATH", help="interpreter that `python` in the manifest means")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--list", action="store_true", help="list the cases and run none")
    return parser


def _target(arguments: argparse.Namespace, command: list[str]) -> Target:
    if arguments.manifest is not None and not command:
        return Target.of_directory(arguments.manifest, subject=arguments.subject, python=arguments.python)
    subject = arguments.subject or (arguments.manifest / SUBJECT_NAME if arguments.manifest else None)
    return Target(command_from(command), Subject.load(subject) if subject else Subject({}))


def _run(target: Target, selection: Selection, arguments: argparse.Namespace) -> int:
    results: list[Result] = []
    runner = Runner(target)
    try:
        for result in runner.run(selection):
            results.append(result)
            sys.stdout.write(line(result) + "\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("wherry-conformance: interrupted\n")
        return EXIT_FAILED
    finally:
        runner.close()
    sys.stdout.write(summary(results) + "\n")
    if arguments.json:
        arguments.json.write_bytes(as_json(results))
    if arguments.junit:
        arguments.junit.write_bytes(as_junit(results))
    if not results:
        raise UsageError("No case was selected; --list names them.")
    return EXIT_FAILED if any(result.bad for result in results) else 0


def _list() -> int:
    for case in load_cases():
        marks = "".join(f" [{mark}]" for mark in ("slow",) if case.slow)
        sys.stdout.write(f"{case.name}{marks}\n    {case.says}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
