"""The cases as tests of pytest, in one line.

TestMine = conformance_suite("path/to/plugin")
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wherry.conformance.case import load_cases
from wherry.conformance.runner import Outcome, Runner, Selection, Target


def conformance_suite(directory: str | os.PathLike[str], *, skip: tuple[str, ...] = (), slow: bool = False) -> type:
    """Makes a test class with one test for each case and class of a plugin.

    Args:
        directory: The plugin's folder, with sidecar.yaml and conformance.yaml.
        skip: Patterns of cases to leave out.
        slow: Whether slow cases are run.

    Returns:
        A class for pytest; bind it to a name that begins with Test.

    Raises:
        ConfigError: The manifest is wrong.
        UsageError: The subject file is wrong.
    """
    import pytest  # the light installation has none

    target = Target.of_directory(Path(directory))
    selection = Selection(skip=skip, slow=slow)
    pairs = [
        (case, class_name)
        for case, class_name in target.pairs(load_cases())
        if selection.takes(case, class_name) and (slow or not case.slow)
    ]
    names = [f"{class_name or 'plugin'}-{case.name}" for case, class_name in pairs]

    class Suite:
        @pytest.fixture(scope="class")
        @classmethod
        def conformance_runner(cls) -> Iterator[Runner]:
            runner = Runner(target)
            yield runner
            runner.close()

        @pytest.mark.parametrize(("case", "class_name"), pairs, ids=names)
        def test_case(self, conformance_runner: Runner, case: Any, class_name: str) -> None:
            result = conformance_runner.run_case(case, class_name)
            if result.outcome is Outcome.SKIPPED:
                pytest.skip(result.message)
            if result.outcome is not Outcome.PASSED:
                pytest.fail(f"{case.says}\n{result.message}", pytrace=False)

    Suite.__doc__ = f"Conformance of {target.command.directory.name}."
    return Suite
