"""Every sidecar of this repository keeps the contract.

A sidecar takes part by having a `conformance.yaml` in its folder. The examples of the Python SDK take part too, as the
plugins in `plugins/`, so that the SDK is held to the contract in its plainest use.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wherry.conformance import conformance_suite
from wherry.contract.manifest import Manifest

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).resolve().parent / "plugins"
SIDECARS = Path(__file__).resolve().parents[2] / "sidecars"


def suite(directory: Path) -> type:
    """Makes the tests of a sidecar; they are skipped where a compiled one can be neither found nor built."""
    manifest = Manifest.load(directory)
    program = (manifest.run or ("",))[0]
    builder = (manifest.build or ("",))[0]
    needs = pytest.mark.skipif(
        "/" in program and not (directory / program).exists() and shutil.which(builder) is None,
        reason=f"{directory.name} is not built, and {builder or 'its compiler'} is not installed",
    )
    return needs(conformance_suite(directory))


for _path in sorted([*SIDECARS.glob("*/conformance.yaml"), *EXAMPLES.glob("*/conformance.yaml")]):
    globals()[f"Test{_path.parent.name.capitalize()}"] = suite(_path.parent)


def test_at_least_one_sidecar_takes_part() -> None:
    assert any(name.startswith("Test") for name in globals())
