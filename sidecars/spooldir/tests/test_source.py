"""What becomes of the files of a directory, told through plans and reads as the engine asks for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.position import Position
from wherry.sdk import Batch, Context, Offsets, Work
from wherry_spooldir.source import SpoolDirConfig, SpoolDirSource


class Engine:
    """Asks for plans, reads what is planned, keeps what is marked: the least an engine does."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.spool, self.finished, self.error = (folder / name for name in ("in", "done", "bad"))
        for path in (self.spool, self.finished, self.error):
            path.mkdir(exist_ok=True)
        texts = {
            "topic": "t",
            "input.path": str(self.spool),
            "finished.path": str(self.finished),
            "error.path": str(self.error),
            **{name.replace("_", "."): str(value) for name, value in config.items()},
        }
        self.source = SpoolDirSource(SpoolDirConfig.parse(texts), Context("c", 1))
        self.positions: dict[str, Position] = {}
        self.rows: list[Any] = []

    def offsets(self) -> Offsets:
        return Offsets(self.positions.values())

    def plan(self) -> list[Work]:
        plan = self.source.plan(self.offsets(), 4)
        for partition in plan.retired:
            self.positions.pop(Position.of(partition, None).partition, None)
        self.keep(*(Position.of(partition, offset) for partition, offset in plan.reached))
        return [Work(split.id, split.data, True) for split in plan.splits]

    def read(self, work: Work, batches_max: int = 1_000) -> None:
        for batches, item in enumerate(self.source.read(work, self.offsets()), 1):
            if isinstance(item, Batch):
                self.rows += [json.loads(row) if isinstance(row, str) else row for row in item.value.to_pylist()]
                self.keep(*(mark.position for mark in item.marks))
            else:
                self.keep(item.position)
            if batches == batches_max:
                return

    def keep(self, *positions: Position) -> None:
        self.positions |= {position.partition: position for position in positions}

    def run(self) -> list[Any]:
        for work in self.plan():
            self.read(work)
        self.plan()
        return self.rows


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_read_and_moved_and_forgotten(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    (engine.spool / "a.csv").write_text("i,s\n1,x\n2,y\n")
    assert engine.run() == [{"i": 1, "s": "x"}, {"i": 2, "s": "y"}]
    assert (names(engine.spool), names(engine.finished)) == ([], ["a.csv"])
    engine.plan()
    assert engine.positions == {}


def test_a_large_file_is_read_in_parts_that_make_it_whole(tmp_path: Path) -> None:
    engine = Engine(tmp_path, split_bytes=1024)
    (engine.spool / "a.csv").write_text("i\n" + "".join(f"{i}\n" for i in range(5_000)))
    parts = engine.plan()
    assert len(parts) > 10
    for part in reversed(parts):
        engine.read(part)
    assert sorted(row["i"] for row in engine.rows) == list(range(5_000))
    engine.plan()
    assert names(engine.finished) == ["a.csv"]


def test_a_part_goes_on_after_the_last_row_that_was_kept(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    line = json.dumps({"text": "x" * 1_000})
    (engine.spool / "a.jsonl").write_text(f"{line}\n" * 5_000)
    engine.read(engine.plan()[0], batches_max=1)
    first = len(engine.rows)
    assert 0 < first < 5_000
    engine.run()
    assert len(engine.rows) == 5_000


def test_a_file_of_the_same_name_that_comes_later_is_read_too(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    for text in ("i\n1\n", "i\n22\n"):
        (engine.spool / "a.csv").write_text(text)
        engine.run()
    assert engine.rows == [{"i": 1}, {"i": 22}]
    assert names(engine.finished) == ["a.1.csv", "a.csv"]


def test_a_bad_file_goes_away_with_a_report_and_the_others_go_on(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    (engine.spool / "bad.csv").write_text("i,s\n1,x\n1,2,3\n")
    (engine.spool / "notes").write_text("what is this")
    (engine.spool / "good.csv").write_text("i\n1\n")
    (engine.spool / "late.jsonl").write_text('{"i":2}\n{"i":\n')
    assert {"i": 1} in engine.run()
    assert names(engine.finished) == ["good.csv"]
    assert names(engine.error) == sorted(
        name + suffix for name in ("bad.csv", "notes", "late.jsonl") for suffix in ("", ".error.json")
    )
    assert "line 2" in json.loads((engine.error / "late.jsonl.error.json").read_text())["error"]


def test_a_bad_file_stops_the_task_when_that_is_wanted(tmp_path: Path) -> None:
    engine = Engine(tmp_path, halt_on_error="true")
    (engine.spool / "late.jsonl").write_text("nope\n")
    with pytest.raises(ConfigError, match=r"late\.jsonl: line 1"):
        engine.run()


def test_a_file_that_stays_is_remembered(tmp_path: Path) -> None:
    engine = Engine(tmp_path, cleanup_policy="none")
    (engine.spool / "a.csv").write_text("i\n1\n")
    engine.run()
    assert (engine.run(), names(engine.spool)) == ([{"i": 1}], ["a.csv"])
    os.utime(engine.spool / "a.csv", (1, 1))
    assert engine.run() == [{"i": 1}, {"i": 1}]


def test_more_files_than_one_plan_takes_are_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wherry_spooldir.source.FILES_PER_PLAN_MAX", 2)
    engine = Engine(tmp_path, cleanup_policy="none")
    for number in range(7):
        (engine.spool / f"{number}.csv").write_text(f"i\n{number}\n")
    for _ in range(6):
        engine.run()
    assert sorted(row["i"] for row in engine.rows) == list(range(7))


def test_files_that_come_with_an_older_time_take_no_positions_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wherry_spooldir.source.FILES_PER_PLAN_MAX", 1)
    engine = Engine(tmp_path)
    (engine.spool / "new.csv").write_text("i\n1\n")
    engine.read(engine.plan()[0])
    (engine.spool / "old.csv").write_text("i\n2\n")
    os.utime(engine.spool / "old.csv", (1, 1))
    for _ in range(4):
        engine.run()
    assert engine.rows == [{"i": 1}, {"i": 2}]


@pytest.mark.parametrize("problem", [PermissionError(13, "Permission denied"), OSError(116, "Stale file handle")])
def test_a_directory_below_that_can_not_be_listed_for_a_while_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: OSError
) -> None:
    engine = Engine(tmp_path, cleanup_policy="none", input_path_walk_recursively="true")
    below = engine.spool / "below"
    below.mkdir()
    for path in (below / "a.csv", engine.spool / "b.csv"):
        path.write_text("i\n1\n")
    assert len(engine.run()) == 2
    scandir = os.scandir

    def failing(path: str) -> Any:
        if Path(path) == below:
            raise type(problem)(problem.errno, problem.strerror, str(path))
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing)
        (engine.spool / "b.csv").unlink()
        engine.plan()
    assert len(engine.run()) == 2
    assert [position.partition for position in engine.positions.values()] == ['{"file":"below/a.csv"}']


def test_an_input_directory_that_fails_is_listed_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tmp_path)

    def failing(path: str) -> Any:
        raise OSError(116, "Stale file handle", str(path))

    monkeypatch.setattr(os, "scandir", failing)
    with pytest.raises(TransientError, match="can't be listed: Stale file handle"):
        engine.plan()


def test_a_finished_file_can_be_deleted(tmp_path: Path) -> None:
    engine = Engine(tmp_path, cleanup_policy="delete")
    (engine.spool / "a.csv").write_text("i\n1\n")
    engine.run()
    assert names(engine.spool) == []


def test_unfinished_and_unwanted_files_are_left_alone(tmp_path: Path) -> None:
    engine = Engine(tmp_path, input_file_pattern=r".*\.csv")
    for name in ("a.csv.part", ".b.csv", "c.json"):
        (engine.spool / name).write_text("i\n1\n")
    assert engine.plan() == []


def test_a_field_becomes_the_key(tmp_path: Path) -> None:
    engine = Engine(tmp_path, key_field="i")
    (engine.spool / "a.csv").write_text("i,s\n7,x\n")
    batch = next(iter(engine.source.read(engine.plan()[0], engine.offsets())))
    assert isinstance(batch, Batch)
    assert batch.key is not None
    assert batch.key.to_pylist() == [7]


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"input.path": "relative"}, "input.path"),
        ({"input.path": "/no/such/folder"}, "input.path"),
        ({"csv.types": "a:nope"}, "csv.types"),
        ({"input.file.pattern": "("}, "input.file.pattern"),
        ({"cleanup.policy": "move"}, "finished.path"),
    ],
)
def test_a_configuration_that_can_not_work_is_refused(tmp_path: Path, config: Mapping[str, str], wrong: str) -> None:
    texts = {"topic": "t", "input.path": str(tmp_path), "error.path": "/tmp/x", "cleanup.policy": "none", **config}
    assert wrong in SpoolDirSource.validate(SpoolDirConfig.parse(texts), False)
