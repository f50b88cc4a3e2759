"""When a process lets itself be forked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wherry.contract.forking import FORK_FD
from wherry.sdk._forking import _other_threads, fork_if_asked


def tasks(folder: Path, **names: str) -> Path:
    (folder / str(os.getpid())).mkdir()
    (folder / str(os.getpid()) / "comm").write_text("python\n")
    for number, name in names.items():
        (folder / number).mkdir()
        (folder / number / "comm").write_text(f"{name}\n")
    return folder


def test_nobody_is_forked_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FORK_FD, raising=False)
    fork_if_asked()  # returns


def test_a_process_of_one_thread_may_be_forked(tmp_path: Path) -> None:
    assert _other_threads(tasks(tmp_path, n1="jemalloc_bg_thd")) == []


def test_a_process_with_a_thread_of_its_own_may_not(tmp_path: Path) -> None:
    assert _other_threads(tasks(tmp_path, n1="poller", n2="jemalloc_bg_thd")) == ["poller"]
