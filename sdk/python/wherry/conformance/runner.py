"""Runs cases on the classes of a plugin and tells what came of each."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final

import grpc

from wherry.conformance.case import Case, load_cases
from wherry.conformance.failure import Failure, Inapplicable, UsageError
from wherry.conformance.launcher import Command, command_of
from wherry.conformance.running import Running
from wherry.conformance.session import Session
from wherry.conformance.subject import SUBJECT_NAME, ClassSubject, Subject, feed
from wherry.connector.v1 import plugin_pb2
from wherry.contract.description import Role
from wherry.contract.manifest import Manifest

KNOWN_FAILING_LINES_MAX: Final = 10_000


class Outcome(Enum):
    """What came of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    KNOWN = "known"
    UNEXPECTED = "unexpected pass"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case on a class.

    Attributes:
        case: Name of the case.
        class_name: The name the class is tested under; empty for the plugin as a whole.
        outcome: What came of it.
        message: Why it failed or was skipped.
        seconds: How long it took.
    """

    case: str
    class_name: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether the run as a whole fails by it."""
        return self.outcome in (Outcome.FAILED, Outcome.UNEXPECTED)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases are run.

    Attributes:
        only: Patterns of names (of cases, or Class:case); empty means all.
        skip: Patterns of names that are left out.
        known_failing: Names that fail; they are run, and one that passes is told.
        slow: Whether slow cases are run.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    known_failing: frozenset[str] = field(default_factory=frozenset)
    slow: bool = False

    def takes(self, case: Case, class_name: str) -> bool:
        """Tells whether a case is run on a class."""
        if self.only and not _matches(self.only, case.name, class_name):
            return False
        return not _matches(self.skip, case.name, class_name)

    def known(self, case: Case, class_name: str) -> bool:
        """Tells whether a case is known to fail on a class."""
        return bool({case.name, f"{class_name}:{case.name}"} & self.known_failing)


@dataclass(frozen=True, slots=True)
class Target:
    """A plugin under test.

    Attributes:
        command: What is started.
        subject: How its classes are tested.
        manifest: Its manifest; None when a command line was given.
    """

    command: Command
    subject: Subject
    manifest: Manifest | None = None

    @classmethod
    def of_directory(cls, directory: Path, *, subject: Path | None = None, python: str | None = None) -> Target:
        """Reads a plugin's folder: its manifest and its subject file.

        Raises:
            ConfigError: The manifest is wrong.
            UsageError: The subject file is wrong.
        """
        manifest = Manifest.load(directory)
        read = Subject.load(subject or manifest.directory / SUBJECT_NAME)
        tested = {read.class_of(name) for name in read.classes}
        unknown = sorted(tested - {known.class_name for known in manifest.classes})
        if unknown:
            raise UsageError(f"{read.path} tests {unknown[0]}, which the manifest doesn't have.")
        return cls(command_of(manifest, python=python), read, manifest)

    def pairs(self, cases: Sequence[Case]) -> list[tuple[Case, str]]:
        """Returns the cases with the names of the classes they are for, as far as the manifest tells."""
        roles = {} if self.manifest is None else {known.class_name: known.role for known in self.manifest.classes}
        plugin = [(case, "") for case in cases if case.role is None and not case.any_class]
        return plugin + [
            (case, name)
            for name in self.subject.classes
            for case in cases
            if (case.any_class or case.role is not None)
            and _is_among(case, self.subject.classes[name].only)
            and roles.get(self.subject.class_of(name)) in (None, case.role, *_any(case))
        ]


class Runner:
    """Runs cases on one plugin. Holds its process; `close` ends it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._session = Session(target.command)

    def run(self, selection: Selection, *, cases: Sequence[Case] | None = None) -> Iterator[Result]:
        """Runs the selected cases, one after another.

        Args:
            selection: Which ones.
            cases: What there is to select from; None means all cases of the kit.
        """
        for case, class_name in self._target.pairs(load_cases() if cases is None else cases):
            if selection.takes(case, class_name):
                yield self._judge(case, class_name, selection)

    def run_case(self, case: Case, class_name: str) -> Result:
        """Runs one case on a class by the name it is tested under (empty for the plugin as a whole)."""
        begin = time.monotonic()
        subject = self._target.subject.classes.get(class_name)
        try:
            self._attempt(case, class_name, subject)
        except Inapplicable as reason:
            result = Result(case.name, class_name, Outcome.SKIPPED, str(reason))
        except (Failure, grpc.RpcError) as error:
            told = str(error) if isinstance(error, Failure) else f"{error.code().name}, {error.details()}"
            tail = "" if "Its last output" in told else self._session.log_tail()
            # Whatever the sidecar is doing now, the next case shall not see it.
            self._session.stop(kill=True)
            result = Result(case.name, class_name, Outcome.FAILED, told + tail)
        else:
            result = Result(case.name, class_name, Outcome.PASSED)
        return replace(result, seconds=round(time.monotonic() - begin, 3))

    def close(self) -> None:
        """Ends the process."""
        self._session.stop()

    def _judge(self, case: Case, class_name: str, selection: Selection) -> Result:
        if case.slow and not selection.slow:
            return Result(case.name, class_name, Outcome.SKIPPED, "It is slow and was not asked for.")
        result = self.run_case(case, class_name)
        if not selection.known(case, class_name):
            return result
        if result.outcome is Outcome.PASSED:
            return replace(result, outcome=Outcome.UNEXPECTED, message="It is listed as failing, but passes.")
        return replace(result, outcome=Outcome.KNOWN) if result.outcome is Outcome.FAILED else result

    def _attempt(self, case: Case, class_name: str, subject: ClassSubject | None) -> None:
        if subject is not None and case.name in subject.skip:
            raise Inapplicable(str(subject.skip[case.name]))
        if case.own_process:
            self._session.stop()
        tested = class_name if subject is None else subject.class_name or class_name
        running = Running(self._session, tested, subject, self._target.manifest)
        try:
            if subject is not None:
                running.variables.fill(subject.config)
                lacking = _lacking(case, running)
                if lacking:
                    raise Inapplicable(lacking)
                feed(subject, running.variables)
            for step in case.steps:
                step.run(running)
        finally:
            running.close()
            if case.own_process:
                self._session.stop()


def known_failing(path: Path) -> frozenset[str]:
    """Reads a list of failing cases: one name a line, # begins a comment.

    Raises:
        UsageError: The file can't be read or is too long.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from error
    if len(lines) > KNOWN_FAILING_LINES_MAX:
        raise UsageError(f"{path} has more than {KNOWN_FAILING_LINES_MAX} lines.")
    return frozenset(name for line in lines if (name := line.partition("#")[0].strip()))


def _any(case: Case) -> tuple[Role, ...]:
    return (Role.SOURCE, Role.SINK, Role.TRANSFORM) if case.any_class else ()


def _is_among(case: Case, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)


def _matches(patterns: Sequence[str], case: str, class_name: str) -> bool:
    names = (case, f"{class_name}:{case}")
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _lacking(case: Case, running: Running) -> str:
    """Returns why a case can't be run on a class; empty if it can."""
    description = running.description
    if case.role is not None and description.role != int(case.role):
        return f"It is for a {case.role.name.lower()}."
    if "shared_planning" in case.needs and not (running.manifest is not None and running.manifest.shares_planning):
        return "The manifest doesn't say planning: shared."
    needs = sorted(case.needs - {"shared_planning"})
    return next((reason for need in needs if (reason := _LACKS[need](running.subject, description))), "")


def _unless(present: bool, reason: str) -> str:
    return "" if present else reason


_Lack = Callable[[ClassSubject, plugin_pb2.ClassDescription], str]
_LACKS: Final[dict[str, _Lack]] = {
    "rows": lambda subject, _: _unless(subject.rows > 0, "The subject file tells no number of rows."),
    "repeatable": lambda subject, _: _unless(subject.repeatable, "The rows are others each time."),
    "bad_value": lambda subject, _: _unless(subject.bad_value is not None, "The subject file has no bad_value."),
    "bad_config": lambda subject, _: _unless(bool(subject.bad_config), "The subject file has no bad_config."),
    "verify": lambda subject, _: _unless(bool(subject.verify), "The subject file doesn't say how to verify."),
    "text": lambda subject, _: _unless("$text" in repr(subject.value.sample), "The sample has no $text."),
    "required_key": lambda _, description: _unless(
        any(key.required and not key.HasField("default_value") for key in description.config), "No key is required."
    ),
    "replayable": lambda _, description: _unless(
        description.source_class == plugin_pb2.SOURCE_CLASS_REPLAYABLE, "The source can't read the same rows again."
    ),
    "alter_offsets": lambda _, description: _unless(
        description.capabilities.alter_offsets, "The class doesn't take part in altering offsets."
    ),
    "transactional": lambda _, description: _unless(
        description.sink_class == plugin_pb2.SINK_CLASS_TRANSACTIONAL, "The sink doesn't store positions."
    ),
}
