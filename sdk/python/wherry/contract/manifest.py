"""The manifest of a plugin, `sidecar.yaml`: what it offers and how it is run.

A manifest is read and checked as a whole here; nothing is started. Every mistake is one sentence that names the file,
the member and what would be right.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from wherry.contract.description import Role
from wherry.contract.errors import ConfigError
from wherry.contract.limits import KIB, MIB, REVISION_MAX, REVISION_MIN

MANIFEST_NAME: Final = "sidecar.yaml"
MANIFEST_BYTES_MAX: Final = MIB
PARSED_KEPT: Final = 64
DIGEST_FILES_MAX: Final = 20_000
# Larger files count by size and time of change instead of content.
DIGEST_FILE_BYTES_MAX: Final = 4 * MIB
_DIGEST_SKIPS: Final = frozenset({"__pycache__", "node_modules", "tests", "target"})

# fmt: off
_MEMBERS: Final = frozenset({
    "name", "version", "description", "revision", "classes", "run", "attach", "remote", "tls", "insecure",
    "environment", "build", "limits", "forkable", "planning",
})
# fmt: on
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(|B|[kK]i?B|Mi?B|Gi?B)")
_SIZE_UNITS: Final = {"": 1, "B": 1, "K": 1000, "KI": KIB, "M": 1000**2, "MI": MIB, "G": 1000**3, "GI": KIB * MIB}
_ROLES: Final = {"source": Role.SOURCE, "sink": Role.SINK, "transform": Role.TRANSFORM}


@dataclass(frozen=True, slots=True)
class ManifestClass:
    """A class that the plugin offers.

    Attributes:
        class_name: Full class name.
        aliases: Other names it answers to.
        role: What it is.
    """

    class_name: str
    aliases: tuple[str, ...]
    role: Role


@dataclass(frozen=True, slots=True)
class Environment:
    """What the plugin's process needs around it.

    Attributes:
        python: Version specifier of the interpreter, such as ">=3.11"; None for a plugin that isn't Python.
        project: Folder with its pyproject.toml (and uv.lock), absolute; None when there is nothing to install.
        variables: Environment variables given to the process.
    """

    python: str | None = None
    project: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What the plugin's process may use; None means the host's default.

    Attributes:
        memory_bytes: Resident memory.
        open_files: Open files.
        cpu: CPU cores.
    """

    memory_bytes: int | None = None
    open_files: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for mutual TLS with a remote sidecar, absolute."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Manifest:
    """A plugin's manifest. Exactly one of `run`, `attach` and `remote` is set.

    Attributes:
        name: Name of the plugin.
        version: Its version.
        directory: Its folder, absolute.
        classes: What it offers.
        run: Command line; "python" as its first word means the interpreter of the plugin's environment, other relative
            paths with a slash are of the folder.
        attach: Path of the Unix socket of a sidecar that runs already.
        remote: host:port of a sidecar elsewhere.
        tls: Files for `remote`; None only together with `insecure`.
        insecure: Whether `remote` may be reached without TLS.
        environment: What the process needs around it.
        limits: What the process may use.
        forkable: Whether sidecars may be forked from a process that has run the plugin's code as far as `serve`, which
            must then have started no thread and opened nothing; needs an SDK that does it (Python's).
        shares_planning: Whether one process may plan for several connectors at once (`planning: shared`), which need no
            more then than a process of their own while records flow.
        build: Command line that makes what `run` needs; None when nothing is to be made.
        description: One paragraph for people.
        revision: Revision of the sidecar contract.
        digest: Changes whenever the manifest or a file of the folder does.
    """

    name: str
    version: str
    directory: Path
    classes: tuple[ManifestClass, ...]
    run: tuple[str, ...] | None = None
    attach: str | None = None
    remote: str | None = None
    tls: Tls | None = None
    insecure: bool = False
    environment: Environment = field(default_factory=Environment)
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    forkable: bool = False
    shares_planning: bool = False
    build: tuple[str, ...] | None = None
    description: str = ""
    revision: int = 1
    digest: str = ""

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Manifest:
        """Reads the manifest of a folder.

        Args:
            directory: The plugin's folder, or its sidecar.yaml.

        Raises:
            ConfigError: The manifest is absent, unreadable or wrong; the sentence says where and what would be right.
        """
        path = Path(directory).resolve()
        path = path if path.name == MANIFEST_NAME and path.is_file() else path / MANIFEST_NAME
        return _Reader(path).manifest()


@functools.lru_cache(PARSED_KEPT)
def _parsed(content: bytes) -> Any:
    """What a manifest's file holds; not to be changed. Parsing takes ten times as long as the rest of its reading."""
    return yaml.safe_load(content)


class _Reader:
    """Reads one manifest; holds the path for its sentences."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.parent

    def manifest(self) -> Manifest:
        members = self._members()
        unknown = sorted(set(members) - _MEMBERS)
        if unknown:
            raise self._wrong(unknown[0], f"is not a member of a manifest; there are {', '.join(sorted(_MEMBERS))}")
        revision = members.get("revision", 1)
        if not isinstance(revision, int) or not REVISION_MIN <= revision <= REVISION_MAX:
            raise self._wrong("revision", f"must be a number from {REVISION_MIN} to {REVISION_MAX}, not {revision!r}")
        name = self._text(members, "name", required=True) or ""
        if not _NAME.fullmatch(name):
            raise self._wrong("name", f"may have letters, digits, '.', '_' and '-' only, not {name!r}")
        run, attach, remote = self._argv(members, "run"), self._text(members, "attach"), self._text(members, "remote")
        if sum(way is not None for way in (run, attach, remote)) != 1:
            raise self._wrong("run", "or one of attach and remote must be given, and only one of them")
        if self._flag(members, "forkable") and run is None:
            raise self._wrong("forkable", "is for plugins that are run here; leave it out beside attach or remote")
        tls, insecure = self._tls(members.get("tls")), self._flag(members, "insecure")
        if remote is not None:
            self._check_remote(remote, tls, insecure)
        return Manifest(
            name=name,
            version=self._text(members, "version", required=True) or "",
            directory=self._folder,
            classes=self._classes(members.get("classes")),
            run=run,
            attach=None if attach is None else str(self._folder / attach.removeprefix("unix://")),
            remote=remote,
            tls=tls,
            insecure=insecure,
            environment=self._environment(members.get("environment")),
            limits=self._limits(members.get("limits")),
            forkable=self._flag(members, "forkable"),
            shares_planning=self._planning(members.get("planning", "own")),
            build=self._argv(members, "build"),
            description=self._text(members, "description") or "",
            revision=revision,
            digest=folder_digest(self._folder),
        )

    def _members(self) -> dict[str, Any]:
        try:
            if self._path.stat().st_size > MANIFEST_BYTES_MAX:
                raise ConfigError(f"{self._path} is larger than 1 MiB; a manifest is a short YAML file.")
            members = _parsed(self._path.read_bytes())
        except FileNotFoundError:
            raise ConfigError(
                f"{self._folder} has no {MANIFEST_NAME}; a plugin's folder needs one.", reason="MANIFEST_MISSING"
            ) from None
        except OSError as error:
            raise ConfigError(f"{self._path} can't be read: {error.strerror}.") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise ConfigError(f"{self._path} isn't YAML{where}: {getattr(error, 'problem', None) or error}.") from error
        if not isinstance(members, dict) or not all(isinstance(name, str) for name in members):
            raise ConfigError(f"{self._path} must be a YAML mapping with name, version, classes and run.")
        return members

    def _wrong(self, member: str, problem: str) -> ConfigError:
        return ConfigError(f"{self._path}: {member} {problem}.", key=member, reason="MANIFEST_INVALID")

    def _text(self, members: Mapping[str, Any], name: str, *, required: bool = False) -> str | None:
        value = members.get(name)
        if value is None and not required:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)  # version: 1.0
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(name, "is missing" if value is None else f"must be a text, not {value!r}")
        return value.strip()

    def _flag(self, members: Mapping[str, Any], name: str) -> bool:
        value = members.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, f"must be true or false, not {value!r}")
        return value

    def _planning(self, value: Any) -> bool:
        if value not in ("own", "shared"):
            raise self._wrong("planning", f"must be own (a process for each connector) or shared, not {value!r}")
        return bool(value == "shared")

    def _argv(self, members: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
        value = members.get(name)
        if value is None:
            return None
        words = [str(word) for word in value] if isinstance(value, list) else []
        if not words or any(isinstance(word, (dict, list)) or word is None for word in value):
            raise self._wrong(name, f"must be a list of words such as [python, -m, mine], not {value!r}")
        return tuple(words)

    def _classes(self, value: Any) -> tuple[ManifestClass, ...]:
        if not isinstance(value, list) or not value:
            raise self._wrong("classes", "must be a list with at least one class")
        classes: list[ManifestClass] = []
        for index, item in enumerate(value):
            where = f"classes[{index}]"
            if not isinstance(item, dict) or not isinstance(item.get("class"), str):
                raise self._wrong(where, "must be a mapping with class, role and, if any, aliases")
            role = _ROLES.get(str(item.get("role")).lower())
            if role is None:
                raise self._wrong(f"{where}.role", f"must be source, sink or transform, not {item.get('role')!r}")
            aliases = item.get("aliases", [])
            if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
                raise self._wrong(f"{where}.aliases", f"must be a list of names, not {aliases!r}")
            classes.append(ManifestClass(item["class"], tuple(aliases), role))
        names = [name for known in classes for name in {known.class_name, *known.aliases}]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise self._wrong("classes", f"has the name {twice} twice")
        return tuple(classes)

    def _environment(self, value: Any) -> Environment:
        if value is None:
            return Environment()
        members = value if isinstance(value, dict) else {}
        known = {"python", "project", "variables", "none"}
        if not isinstance(value, dict) or set(members) - known:
            raise self._wrong("environment", f"may have {', '.join(sorted(known))}, not {value!r}")
        variables = members.get("variables", {})
        if not isinstance(variables, dict):
            raise self._wrong("environment.variables", f"must be a mapping of texts, not {variables!r}")
        texts = {str(name): str(text) for name, text in variables.items()}
        if self._flag(members, "none"):
            return Environment(variables=texts)
        project = self._text(members, "project")
        folder = None if project is None else (self._folder / project).resolve()
        if folder is not None and not (folder / "pyproject.toml").is_file():
            raise self._wrong("environment.project", f"names {folder}, which has no pyproject.toml")
        return Environment(self._text(members, "python"), folder, texts)

    def _limits(self, value: Any) -> ProcessLimits:
        if value is None:
            return ProcessLimits()
        if not isinstance(value, dict) or set(value) - {"memory", "open_files", "cpu"}:
            raise self._wrong("limits", f"may have memory, open_files and cpu, not {value!r}")
        open_files, cpu = value.get("open_files"), value.get("cpu")
        if open_files is not None and (not isinstance(open_files, int) or open_files < 16):
            raise self._wrong("limits.open_files", f"must be a number from 16, not {open_files!r}")
        if cpu is not None and (isinstance(cpu, bool) or not isinstance(cpu, (int, float)) or cpu <= 0):
            raise self._wrong("limits.cpu", f"must be a number of cores above 0, not {cpu!r}")
        return ProcessLimits(self._size(value.get("memory")), open_files, None if cpu is None else float(cpu))

    def _size(self, value: Any) -> int | None:
        if value is None:
            return None
        match = _SIZE.fullmatch(str(value).strip())
        size = (
            int(float(match[1]) * _SIZE_UNITS[match[2].upper().removesuffix("B") or match[2].upper()]) if match else 0
        )
        if size <= 0:
            raise self._wrong("limits.memory", f"must be a size such as 512MiB, not {value!r}")
        return size

    def _tls(self, value: Any) -> Tls | None:
        if value is None:
            return None
        members = value if isinstance(value, dict) else {}
        if set(members) != {"authority", "certificate", "key"}:
            raise self._wrong("tls", "must be a mapping with the files authority, certificate and key")
        files = [self._folder / str(members[name]) for name in ("authority", "certificate", "key")]
        absent = next((file for file in files if not file.is_file()), None)
        if absent:
            raise self._wrong("tls", f"names {absent}, which is not a file")
        return Tls(*files)

    def _check_remote(self, remote: str, tls: Tls | None, insecure: bool) -> None:
        host, _, port = remote.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise self._wrong("remote", f"must be host:port, not {remote!r}")
        if tls is None and not insecure:
            raise self._wrong("remote", "needs tls with authority, certificate and key (or insecure: true for a test)")


def folder_digest(folder: Path) -> str:
    """Returns a digest that changes whenever a file of a plugin's folder does.

    Hidden files, caches and tests don't count. Files over 4 MiB count by size and time of change.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        status = path.stat()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{status.st_size}\0".encode())
        if status.st_size > DIGEST_FILE_BYTES_MAX:
            digest.update(str(status.st_mtime_ns).encode())
        else:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _DIGEST_SKIPS and not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith(".") or name.endswith(".pyc") or not path.is_file():
                continue
            count += 1
            if count > DIGEST_FILES_MAX:
                raise ConfigError(f"{folder} holds more than {DIGEST_FILES_MAX} files; a plugin's folder should not.")
            yield path
