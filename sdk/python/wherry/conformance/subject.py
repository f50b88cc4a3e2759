"""What a plugin's author tells the runner: `conformance.yaml` in the plugin's folder.

    classes:
      wherry.example.CounterSource:
        config: {topic: conformance, count: "1000"}   # a configuration that works
        rows: 1000                                    # rows that one pass over all work gives
      wherry.example.PrinterSink:
        config: {file: $scratch/out.txt}
        value: {kind: text, sample: "row $n"}
        verify: {file: $scratch/out.txt}
      printer-of-json:                                # the same class once more, configured in another way
        class: wherry.example.PrinterSink
        config: {file: $scratch/out.txt, format: json}
        only: [l3-rows-arrive]

Variables in any text: `$scratch` (a new folder for each case), `$unique` (a short text, new for each case),
`$env.NAME` (an environment variable; the class is skipped when it isn't set). In samples: `$n` (the row's number) and
`$text` (a text that the case chooses the length of).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import yaml

from wherry.conformance.failure import Failure, Inapplicable, UsageError

SUBJECT_NAME: Final = "conformance.yaml"
COMMAND_DEADLINE_S: Final = 60.0
FEED_LINES_MAX: Final = 1_000_000
KINDS: Final = ("text", "json", "bytes", "number", "struct")
_VARIABLE: Final = re.compile(r"\$(?:env\.)?\w+")


@dataclass(frozen=True, slots=True)
class Sample:
    """How rows for a sink look.

    Attributes:
        kind: text, json, bytes, number (64 bits) or struct.
        sample: A text, or for a struct a mapping of fields.
        fields: Arrow types of a struct's fields, by name.
    """

    kind: str
    sample: Any
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClassSubject:
    """How one class is put to the test.

    Attributes:
        config: A configuration that works.
        rows: Sources: rows that one pass over all work gives; 0 leaves cases out that need them.
        ordered: Sources: whether a pass gives the rows in the same order every time.
        repeatable: Sources: whether a pass gives the same rows every time.
        feed: What is made ready before each case: `files` and `commands`.
        value: Sinks: the values.
        key: Sinks: the keys; None for none.
        bad_value: Sinks: a sample that the sink refuses as a row error; None if it takes everything.
        bad_config: Values that are wrong, one key each, checked one after another.
        verify: Sinks: how the rows at the destination are counted: `file`, or `command` that prints the number.
        skip: Cases that don't apply, with the reason.
        only: Patterns of the cases that are run; empty means all. For a further configuration of a class, or a class
            that shares its code with another, whose other cases would show nothing new.
        class_name: The class, where it isn't the name under which this stands (`class` in the file); empty where it is.
    """

    config: Mapping[str, str]
    rows: int = 0
    ordered: bool = True
    repeatable: bool = True
    feed: Mapping[str, Any] = field(default_factory=dict)
    value: Sample = field(default_factory=lambda: Sample("text", "row $n $text"))
    key: Sample | None = None
    bad_value: Any = None
    bad_config: Mapping[str, str] = field(default_factory=dict)
    verify: Mapping[str, Any] = field(default_factory=dict)
    skip: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()
    class_name: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A plugin under test.

    Attributes:
        classes: How its classes are tested, by class name; a class that is tested in several configurations stands
            under several names.
        path: Where this was read; for sentences.
    """

    classes: Mapping[str, ClassSubject]
    path: Path | None = None

    @classmethod
    def load(cls, path: Path) -> Subject:
        """Reads a subject file.

        Raises:
            UsageError: It is absent or wrong.
        """
        try:
            document = yaml.safe_load(path.read_bytes())
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}.") from error
        except yaml.YAMLError as error:
            raise UsageError(f"{path} isn't YAML: {error}") from error
        classes = document.get("classes") if isinstance(document, dict) else None
        if not isinstance(classes, dict) or set(document) != {"classes"}:
            raise UsageError(f"{path} must be a mapping with one member, classes.")
        return cls({name: _class(path, name, members) for name, members in classes.items()}, path)

    def class_of(self, name: str) -> str:
        """Returns the class that is tested under a name."""
        return self.classes[name].class_name or name


_MEMBERS: Final = frozenset(member.name for member in fields(ClassSubject)) - {"class_name"} | {"class"}


class Variables:
    """Puts values in place of variables."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def fill(self, value: Any, **more: Any) -> Any:
        """Returns a value with its variables replaced, in depth; a text that is one variable takes its type.

        Raises:
            Inapplicable: An environment variable isn't set.
            UsageError: There is no such variable.
        """
        if isinstance(value, str):
            if _VARIABLE.fullmatch(value):
                return self._look_up(value, more)
            return _VARIABLE.sub(lambda match: str(self._look_up(match[0], more)), value)
        if isinstance(value, Mapping):
            return {name: self.fill(member, **more) for name, member in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.fill(member, **more) for member in value]
        return value

    def put(self, name: str, value: Any) -> None:
        """Sets a variable."""
        self._values[name] = value

    def get(self, name: str) -> Any:
        """Returns a variable.

        Raises:
            UsageError: It has not been set.
        """
        return self._look_up(f"${name}", {})

    def _look_up(self, variable: str, more: Mapping[str, Any]) -> Any:
        name = variable[1:]
        if name.startswith("env."):
            found = os.environ.get(name[4:])
            if found is None:
                raise Inapplicable(f"The environment variable {name[4:]} isn't set.")
            return found
        if name in more:
            return more[name]
        if name not in self._values:
            raise UsageError(f"There is no variable {variable}; there are {', '.join(sorted(self._values))}.")
        return self._values[name]


def feed(subject: ClassSubject, variables: Variables) -> None:
    """Makes ready what a class needs: files with lines, and commands.

    Raises:
        UsageError: A file can't be written or a command failed.
    """
    for file in subject.feed.get("files", ()):
        path = Path(variables.fill(file["path"]))
        count = int(file.get("lines", 1))
        if count > FEED_LINES_MAX:
            raise UsageError(f"A feed has at most {FEED_LINES_MAX} lines, not {count}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as out:
            out.write(str(variables.fill(file.get("header", ""))))
            line = file.get("line", "row $n")
            out.writelines(f"{variables.fill(line, n=number)}\n" for number in range(count))
    for command in subject.feed.get("commands", ()):
        run(variables.fill(command))


def delivered_rows(subject: ClassSubject, variables: Variables) -> int:
    """Counts the rows at the destination.

    Raises:
        Failure: They can't be counted.
    """
    if "file" in subject.verify:
        path = Path(variables.fill(subject.verify["file"]))
        try:
            return path.read_bytes().count(b"\n")
        except OSError as error:
            raise Failure(f"The destination {path} can't be read: {error.strerror}.") from error
    printed = run(variables.fill(subject.verify["command"]))
    try:
        return int(printed.strip())
    except ValueError:
        raise UsageError(f"The verify command must print a number of rows, not {printed!r}.") from None


def run(argv: list[str]) -> str:
    """Runs a command of a subject file and returns what it prints; "python" stands for this interpreter.

    Raises:
        UsageError: It failed.
    """
    if argv[:1] == ["python"]:
        argv = [sys.executable, *argv[1:]]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{' '.join(argv)} failed: {error}.") from error
    if done.returncode:
        raise UsageError(f"{' '.join(argv)} ended with code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _class(path: Path, name: str, members: Any) -> ClassSubject:
    if not isinstance(members, dict) or not isinstance(members.get("config"), dict):
        raise UsageError(f"{path}: {name} must be a mapping with config.")
    unknown = sorted(set(members) - _MEMBERS)
    if unknown:
        raise UsageError(f"{path}: {name} has no member {unknown[0]}; there are {', '.join(sorted(_MEMBERS))}.")
    given = {member: members[member] for member in members if member not in ("config", "value", "key", "skip", "class")}
    for member in ("value", "key"):
        if member in members:
            given[member] = _sample(path, f"{name}.{member}", members[member])
    skip = members.get("skip", {})
    if not isinstance(skip, dict):
        raise UsageError(f"{path}: {name}.skip must map cases to reasons.")
    only = members.get("only", [])
    if not isinstance(only, list) or not all(isinstance(pattern, str) for pattern in only):
        raise UsageError(f"{path}: {name}.only must be a list of patterns of cases.")
    texts = {str(key): _text(value) for key, value in members["config"].items()}
    return ClassSubject(config=texts, skip=skip, class_name=str(members.get("class", "")), **given)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sample(path: Path, where: str, members: Any) -> Sample:
    if not isinstance(members, dict) or members.get("kind") not in KINDS or "sample" not in members:
        raise UsageError(f"{path}: {where} must be a mapping with kind ({', '.join(KINDS)}) and sample.")
    if members["kind"] == "struct" and set(members.get("fields", ())) != set(members["sample"]):
        raise UsageError(f"{path}: {where}.fields must name the Arrow type of every field of the sample.")
    return Sample(members["kind"], members["sample"], members.get("fields", {}))
