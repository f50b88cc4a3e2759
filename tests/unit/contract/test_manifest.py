"""Manifests: a good one is read whole, every mistake is one sentence that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.contract.description import Role
from wherry.contract.errors import ConfigError
from wherry.contract.manifest import Manifest, ManifestClass

GOOD = """\
name: filestream
version: 0.1.0
revision: 1
classes:
  - class: org.apache.kafka.connect.file.FileStreamSourceConnector
    aliases: [FileStreamSource, FileStreamSourceConnector]
    role: source
run: [python, -m, filestream]
environment: {python: ">=3.11", project: ., variables: {LEVEL: 3}}
build: [go, build]
limits: {memory: 512MiB, open_files: 1024, cpu: 2.0}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "sidecar.yaml").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").touch()
    return folder


def test_a_manifest_is_read_whole(tmp_path: Path) -> None:
    manifest = Manifest.load(written(tmp_path, GOOD))
    assert (manifest.name, manifest.version, manifest.directory) == ("filestream", "0.1.0", tmp_path)
    names = ("FileStreamSource", "FileStreamSourceConnector")
    source = ManifestClass("org.apache.kafka.connect.file.FileStreamSourceConnector", names, Role.SOURCE)
    assert manifest.classes == (source,)
    assert (manifest.run, manifest.build) == (("python", "-m", "filestream"), ("go", "build"))
    assert (manifest.environment.python, manifest.environment.project) == (">=3.11", tmp_path)
    assert manifest.environment.variables == {"LEVEL": "3"}
    limits = manifest.limits
    assert (limits.memory_bytes, limits.open_files, limits.cpu) == (512 * 1024**2, 1024, 2.0)


def test_a_plugin_is_forked_only_where_its_manifest_says_so(tmp_path: Path) -> None:
    assert not Manifest.load(written(tmp_path, GOOD)).forkable
    assert Manifest.load(written(tmp_path, GOOD + "forkable: true\n")).forkable


def test_planning_is_each_connectors_own_unless_the_manifest_shares_it(tmp_path: Path) -> None:
    assert not Manifest.load(written(tmp_path, GOOD)).shares_planning
    assert Manifest.load(written(tmp_path, GOOD + "planning: shared\n")).shares_planning


def test_the_file_itself_may_be_named(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    assert Manifest.load(tmp_path / "sidecar.yaml").name == "filestream"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("name: filestream", "nom: filestream", "nom is not a member of a manifest"),
        ("name: filestream\n", "", "name is missing"),
        ("name: filestream", "name: a b", "name may have letters"),
        ("version: 0.1.0", "version: [1]", "version must be a text"),
        ("revision: 1", "revision: 2", "revision must be a number from 1 to 1, not 2"),
        ("revision: 1", "planning: yes", "planning must be own .* or shared, not True"),
        ("revision: 1", "forkable: 1", "forkable must be true or false, not 1"),
        (
            "run: [python, -m, filestream]",
            "attach: a.sock\nforkable: true",
            "forkable is for plugins that are run here",
        ),
        ("role: source", "role: well", r"classes\[0\].role must be source, sink or transform, not 'well'"),
        ("[FileStreamSource, ", "[FileStreamSource, FileStreamSource, ", None),
        ("class: org", "klass: org", r"classes\[0\] must be a mapping with class, role"),
        ("run: [python, -m, filestream]", "run: python", "run must be a list of words"),
        ("run: [python, -m, filestream]", "", "run or one of attach and remote must be given"),
        ("run: [", "attach: s.sock\nrun: [", "only one of them"),
        ("run: [python, -m, filestream]", "remote: host", "remote must be host:port"),
        ("run: [python, -m, filestream]", "remote: host:99", "remote needs tls"),
        ("project: .", "project: nowhere", "has no pyproject.toml"),
        ("variables: {LEVEL: 3}", "colour: red", "environment may have"),
        ("memory: 512MiB", "memory: much", "limits.memory must be a size such as 512MiB"),
        ("open_files: 1024", "open_files: 3", "limits.open_files must be a number from 16"),
        ("cpu: 2.0", "cpu: 0", "limits.cpu must be a number of cores above 0"),
        ("cpu: 2.0", "gpu: 1", "limits may have"),
        ("classes:", "classes: []\nx:", "x is not a member"),
        (GOOD, "[", "isn't YAML at line"),
        (GOOD, "just text", "must be a YAML mapping"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, sentence: str | None) -> None:
    assert old in GOOD
    folder = written(tmp_path, GOOD.replace(old, new, 1))
    if sentence is None:
        Manifest.load(folder)
        return
    with pytest.raises(ConfigError, match=sentence) as refused:
        Manifest.load(folder)
    assert str(tmp_path) in str(refused.value)


def test_a_folder_without_a_manifest_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no sidecar.yaml") as refused:
        Manifest.load(tmp_path)
    assert refused.value.reason == "MANIFEST_MISSING"


def test_one_name_for_two_classes_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("run:", "  - {class: other.Class, aliases: [FileStreamSource], role: sink}\nrun:")
    with pytest.raises(ConfigError, match="has the name FileStreamSource twice"):
        Manifest.load(written(tmp_path, text))


def test_attach_and_remote_are_read(tmp_path: Path) -> None:
    attached = Manifest.load(written(tmp_path, GOOD.replace("run: [python, -m, filestream]", "attach: run/s.sock")))
    assert attached.attach == str(tmp_path / "run/s.sock")
    remote = GOOD.replace("run: [python, -m, filestream]", "remote: 'h:5000'\ninsecure: true")
    assert Manifest.load(written(tmp_path, remote)).remote == "h:5000"


def test_the_digest_changes_with_any_file_but_not_with_caches(tmp_path: Path) -> None:
    before = Manifest.load(written(tmp_path, GOOD)).digest
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert Manifest.load(tmp_path).digest == before
    (tmp_path / "code.py").write_text("x = 1")
    assert Manifest.load(tmp_path).digest != before
