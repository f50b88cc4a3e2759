"""The folder of sockets, and who may listen in it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.contract.errors import AuthError, ConfigError
from wherry.worker.host import rundir


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "served.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path


def stale(directory: Path) -> Path:
    path = directory / "stale.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


def test_a_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    rundir.make_private(tmp_path / "a/b")
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(ConfigError, match="with mode 750, and 700 is wanted"):
        rundir.make_private(tmp_path)


def test_stale_sockets_go_and_served_ones_stay(tmp_path: Path, served: Path) -> None:
    dead = stale(tmp_path)
    rundir.remove_stale(tmp_path)
    assert served.exists()
    assert not dead.exists()


def test_a_stale_place_is_taken_over(tmp_path: Path) -> None:
    dead = stale(tmp_path)
    rundir.claim(dead)
    assert not dead.exists()


def test_a_served_place_is_not_taken_over(served: Path) -> None:
    with pytest.raises(ConfigError, match=f"process {os.getpid()} listens at"):
        rundir.claim(served)


def test_a_path_too_long_for_the_system_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has 207 bytes, and the system allows 105; choose a shorter folder"):
        rundir.check_socket_path(Path("/" + "x" * 206))


def test_the_peer_of_a_socket_is_known(served: Path) -> None:
    assert rundir.peer_of(served) == rundir.Peer(os.getpid(), os.geteuid())


def test_a_peer_of_another_user_is_refused() -> None:
    with pytest.raises(AuthError, match="is run by user 12345"):
        rundir.check_peer(rundir.Peer(1, 12345), session_id=None, what="sidecar")


def test_a_peer_in_the_place_of_our_process_is_refused() -> None:
    with pytest.raises(AuthError, match=f"process {os.getpid()} listens in the place of sidecar, which is process 1"):
        rundir.check_peer(rundir.Peer(os.getpid(), os.geteuid()), session_id=1, what="sidecar")
