"""Working folders: whose they are decides whether they go."""

from __future__ import annotations

from pathlib import Path

from wherry.coordinator.dev.folders import server_folder


def test_a_temporary_folder_goes_with_its_server() -> None:
    folder = server_folder("test", None)
    (folder.path / "data").touch()
    assert folder.removable == (folder.path,)
    folder.discard()
    assert not folder.path.exists()


def test_a_folder_of_the_user_is_made_and_kept(tmp_path: Path) -> None:
    folder = server_folder("test", tmp_path / "new" / "data")
    assert folder.removable == ()
    folder.discard()
    assert folder.path.is_dir()
