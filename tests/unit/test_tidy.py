"""The house rules that a linter does not know: lengths, names of files, open ends, two commands in README."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
ROOM_README_LINES_MAX = 30
TOP_LEVEL = {
    *("protos", "coordinator", "worker", "sidecars", "sdk", "deploy", "tests", "pyproject.toml", "README.md"),
    *(".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "uv.lock"),  # demanded by tools and by custom
}
ROOMS = ("protos", "coordinator", "worker", "sidecars", "sdk", "deploy", "tests")
SOURCE_ROOTS = {"coordinator": "coordinator/wherry", "worker": "worker/wherry", "sdk": "sdk/python/wherry"}


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Files git knows or would add, so that scratch files don't count."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return tuple(path for name in names if (path := ROOT / name).is_file())


def python_files() -> Iterator[Path]:
    return (path for path in tracked("*.py") if "_pb2" not in path.name)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_root_holds_only_the_rooms_and_what_tools_demand() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert found <= TOP_LEVEL, f"not expected at the root: {sorted(found - TOP_LEVEL)}"


def test_no_room_hides_the_others_behind_a_namespace_init() -> None:
    assert not [name_of(path) for path in python_files() if path.parts[-2:] == ("wherry", "__init__.py")]


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_it_holds_in_a_page(room: str) -> None:
    readme = ROOT / room / "README.md"
    assert readme.is_file(), f"{room} has no README.md"
    assert len(readme.read_text().splitlines()) <= ROOM_README_LINES_MAX


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{name_of(path)}:{node.lineno} {node.name} has {length} lines"
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)


def test_no_file_is_longer_than_its_limit() -> None:
    too_long = {
        name_of(path): n for path in python_files() if (n := len(path.read_text().splitlines())) > FILE_LINES_MAX
    }
    assert not too_long


def test_every_module_opens_by_telling_what_it_is() -> None:
    texts = {name_of(path): path.read_text() for path in python_files()}
    silent = [name for name, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert not silent


def test_nothing_is_left_open() -> None:
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b")  # tidy: the pattern itself
    left = [
        f"{name_of(path)}:{number}"
        for path in tracked("*.py", "*.go", "*.proto", "*.toml", "*.yaml", "*.sh")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark.search(line) and "tidy:" not in line
    ]
    assert not left


def test_every_source_file_with_behaviour_has_a_test_room() -> None:
    rooms = ("contract", "sdk", "worker", "coordinator")
    missing = [room for room in rooms if not list((ROOT / "tests/unit" / room).rglob("test_*.py"))]
    assert not missing


def test_the_wheel_carries_every_plugin_but_that_of_the_tests_and_that_in_go() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    carried = {path.removeprefix("sidecars/") for path in wheel["only-include"] if path.startswith("sidecars/")}
    assert carried == {path.parent.name for path in tracked("sidecars/*/sidecar.yaml")} - {"hostile", "tally"}


def test_readme_opens_with_the_two_commands_of_one_line_each() -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2, "README.md needs two bash blocks: the main job, then the tests"
    assert all(len(block.strip().splitlines()) == 1 for block in blocks[:2])
    assert "wherry demo" in blocks[0]


def test_the_ci_script_calls_the_readme_test_command() -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks[1].strip() in (ROOT / ".ci/run").read_text()
