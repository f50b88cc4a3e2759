"""Where this very Wherry comes from, so that a plugin's environment gets the same one.

Three cases: installed from an index (the same version from there), installed from a directory, archive or repository
(the same again, from `direct_url.json`), or run from a source tree through the path (that tree).
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import wherry.contract

DISTRIBUTION = "wherry"
EXPORTER = "opentelemetry-exporter-otlp-proto-grpc"
_TREE_MARK = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class EngineSource:
    """How to install the engine's base somewhere else.

    Attributes:
        requirement: What uv is told to install.
        editable: Whether it is a source tree whose changes are to be seen at once.
        extras: What comes with it.
    """

    requirement: str
    editable: bool = False
    extras: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """Arguments of `uv pip install`."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        # A requirement starts with the name of what it requires; anything else is a directory.
        name = DISTRIBUTION if self.requirement.startswith(DISTRIBUTION) else self.requirement
        requirement = f"{name}{extras}{self.requirement.removeprefix(name)}"
        return ["--editable", requirement] if self.editable else [requirement]


def engine_source() -> EngineSource:
    """Return where this Wherry comes from, with the extras that a sidecar needs as well."""
    return dataclasses.replace(_source(), extras=("otlp",) if exports_traces() else ())


def exports_traces() -> bool:
    """Whether this Wherry can export traces; its sidecars then can, too, so that a trace doesn't end at them."""
    try:
        importlib.metadata.distribution(EXPORTER)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _source() -> EngineSource:
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        tree = source_tree()
        # Without metadata and without a tree (a zip, a stripped image) the index is the only hope.
        return EngineSource(str(tree), editable=True) if tree else EngineSource(DISTRIBUTION)
    direct = distribution.read_text("direct_url.json")
    if direct is None:
        return EngineSource(f"{DISTRIBUTION}=={distribution.version}")
    return _from_direct_url(json.loads(direct))


def source_tree() -> Path | None:
    """Return the root of the source tree this runs from, None when it is installed."""
    for parent in contract_directory().parents:
        if (parent / _TREE_MARK).is_file() and f'name = "{DISTRIBUTION}"' in (parent / _TREE_MARK).read_text():
            return parent
    return None


def contract_directory() -> Path:
    """Return the folder of `wherry.contract`."""
    return Path(wherry.contract.__path__[0]).resolve()


def is_installed() -> bool:
    """Whether this interpreter has Wherry installed, so that it finds it without a path."""
    try:
        importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _from_direct_url(direct: dict[str, object]) -> EngineSource:
    url = str(direct["url"])
    directory, repository = direct.get("dir_info"), direct.get("vcs_info")
    if isinstance(directory, dict):
        path = url2pathname(urlparse(url).path)
        return EngineSource(path, editable=bool(directory.get("editable")))
    if isinstance(repository, dict):
        return EngineSource(f"{DISTRIBUTION} @ {repository['vcs']}+{url}@{repository['commit_id']}")
    return EngineSource(f"{DISTRIBUTION} @ {url}")
