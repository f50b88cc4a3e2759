"""Cases: what a sidecar has to do, as data.

A case is a list of steps; a step names one of the verbs of `steps_plugin`, `steps_source` and `steps_sink` and gives
its arguments. Case files are YAML in `cases/`; a case's name is stable and begins with its level: l1 every plugin,
l2 sources (and configuration), l3 sinks, l4 transformations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import yaml

from wherry.conformance import steps_plugin, steps_shared, steps_sink, steps_source, steps_transform
from wherry.conformance.failure import UsageError
from wherry.conformance.running import Running
from wherry.contract.description import Role

CASES_DIRECTORY: Final = Path(__file__).parent / "cases"
NEEDS: Final = frozenset(
    (
        "rows",
        "repeatable",
        "bad_value",
        "bad_config",
        "verify",
        "text",
        "required_key",
        "replayable",
        "alter_offsets",
        "transactional",
        "shared_planning",
    )
)
_ROLES: Final = {"plugin": None, "source": Role.SOURCE, "sink": Role.SINK, "transform": Role.TRANSFORM}
_MEMBERS: Final = frozenset({"case", "says", "role", "needs", "own_process", "slow", "steps"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        verb: Its name.
        arguments: Its arguments by name.
    """

    verb: str
    arguments: Mapping[str, Any]

    def run(self, running: Running) -> None:
        """Runs the step."""
        VERBS[self.verb](running, **self.arguments)


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        name: Stable name.
        says: What is required, one sentence.
        role: Role of the classes it is for; None for the plugin as a whole.
        any_class: Whether it is for classes of every role.
        needs: What the subject or the class has to have.
        own_process: Whether it gets a process of its own.
        slow: Whether it is run only when asked for.
        steps: The steps.
    """

    name: str
    says: str
    role: Role | None
    any_class: bool
    needs: frozenset[str]
    own_process: bool
    slow: bool
    steps: tuple[Step, ...]


def load_cases(directory: Path = CASES_DIRECTORY) -> list[Case]:
    """Reads all case files of a folder, in the order of their names.

    Raises:
        UsageError: A file is wrong.
    """
    cases = [case for path in sorted(directory.glob("*.yaml")) for case in _file(path)]
    names = [case.name for case in cases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"There are two cases {twice}.")
    return cases


def _verbs(modules: Sequence[ModuleType]) -> dict[str, Callable[..., None]]:
    """Returns the steps: the public functions that a module defines itself."""
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }


VERBS: Final = _verbs((steps_plugin, steps_shared, steps_source, steps_sink, steps_transform))


def _file(path: Path) -> list[Case]:
    document = yaml.safe_load(path.read_bytes())
    if not isinstance(document, list):
        raise UsageError(f"{path} must be a list of cases.")
    return [_case(path, members) for members in document]


def _case(path: Path, members: Any) -> Case:
    if not isinstance(members, dict) or not isinstance(members.get("case"), str):
        raise UsageError(f"{path}: a case must be a mapping with case, says, role and steps.")
    name = members["case"]
    unknown = sorted(set(members) - _MEMBERS)
    if unknown:
        raise UsageError(f"{path}: {name} has no member {unknown[0]}; there are {', '.join(sorted(_MEMBERS))}.")
    role = members.get("role")
    if role not in (*_ROLES, "any"):
        raise UsageError(f"{path}: the role of {name} must be plugin, source, sink, transform or any, not {role!r}.")
    needs = frozenset(members.get("needs", ()))
    if needs - NEEDS:
        raise UsageError(f"{path}: {name} needs {min(needs - NEEDS)}; there are {', '.join(sorted(NEEDS))}.")
    return Case(
        name=name,
        says=str(members.get("says", "")),
        role=_ROLES.get(role),
        any_class=role == "any",
        needs=needs,
        own_process=bool(members.get("own_process")),
        slow=bool(members.get("slow")),
        steps=tuple(_step(path, name, step) for step in members.get("steps", ())),
    )


def _step(path: Path, case: str, step: Any) -> Step:
    """Reads `verb`, `verb: {name: value}` or `verb: value`, the value being the first argument."""
    verb, given = next(iter(step.items())) if isinstance(step, dict) and len(step) == 1 else (step, None)
    if not isinstance(verb, str) or verb not in VERBS:
        raise UsageError(f"{path}: {case} has the step {step!r}; a step is one of {', '.join(sorted(VERBS))}.")
    signature = inspect.signature(VERBS[verb])
    if given is None:
        arguments: dict[str, Any] = {}
    elif isinstance(given, dict):
        arguments = {str(name): value for name, value in given.items()}
    else:
        parameters = list(signature.parameters)
        if len(parameters) < 2:
            raise UsageError(f"{path}: {case}: {verb} takes no argument.")
        arguments = {parameters[1]: given}
    try:
        signature.bind(None, **arguments)
    except TypeError as error:
        raise UsageError(f"{path}: {case}: {verb}: {error}.") from None
    return Step(verb, arguments)
