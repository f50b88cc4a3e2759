"""Which plugins are there: finds manifests, resolves class names, keeps descriptions.

Decides which folder serves a `connector.class`; starts nothing by itself (`describe` is passed in). A broken folder is
listed with what is wrong and never stops the others. Descriptions are kept on disk by the manifest's digest, so that
plugin lists and key definitions need no running sidecar.
"""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it publishes no types

from wherry.connector.v1 import plugin_pb2
from wherry.contract import from_proto, to_proto
from wherry.contract.cache import cache_folder
from wherry.contract.description import ClassDescription, Role
from wherry.contract.errors import ConfigError
from wherry.contract.manifest import MANIFEST_NAME, Manifest, ManifestClass

_log = logging.getLogger(__name__)

PLUGIN_FOLDERS_MAX = 10_000
# Folders beside the bundled plugins that are none: misbehaves on request, to test the engine.
UNBUNDLED = frozenset({"hostile"})
CACHE_FORMAT = "2"
_CONNECTOR = "Connector"

Describe = Callable[[Manifest], list[ClassDescription]]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One class of one plugin."""

    manifest: Manifest
    manifest_class: ManifestClass

    @property
    def class_name(self) -> str:
        """Full class name."""
        return self.manifest_class.class_name

    @property
    def role(self) -> Role:
        """Source, sink or transform."""
        return self.manifest_class.role

    @property
    def names(self) -> frozenset[str]:
        """All names it answers to: the full one, the simple one, that without 'Connector', and its aliases."""
        simple = self.class_name.rpartition(".")[2]
        short = simple.removesuffix(_CONNECTOR) or simple
        return frozenset({self.class_name, simple, short, *self.manifest_class.aliases})


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A folder that offers nothing, and why."""

    directory: Path
    message: str


class PluginRegistry:
    """The plugins of a worker.

    Args:
        paths: Folders to look in: each is a plugin itself, or holds plugins. Of a class found twice the newest
            version counts, and of equal versions the first.
        describe: Asks a plugin for its classes; called once for each digest.
        cache: Folder for descriptions; None keeps them in memory only.
    """

    def __init__(self, paths: Iterable[Path], describe: Describe, *, cache: Path | None = None) -> None:
        self._describe = describe
        self._cache = cache
        self._lock = threading.Lock()
        self._descriptions: dict[str, list[ClassDescription]] = {}
        self._describing: dict[str, threading.Lock] = {}
        self._by_name: dict[str, Plugin] = {}
        self._plugins: list[Plugin] = []
        self._broken: list[BrokenPlugin] = []
        for folder in _folders(paths, self._broken):
            self._add(folder)

    def plugins(self) -> list[Plugin]:
        """All classes, by name."""
        return sorted(self._plugins, key=lambda plugin: plugin.class_name)

    def broken(self) -> list[BrokenPlugin]:
        """Folders that offer nothing."""
        return list(self._broken)

    def manifests(self) -> list[Manifest]:
        """All plugins, by name."""
        found = {plugin.manifest.directory: plugin.manifest for plugin in self._plugins}
        return sorted(found.values(), key=lambda manifest: manifest.name)

    def find(self, name: str) -> Plugin | None:
        """The class of a name; None when there is none such."""
        return self._by_name.get(name.strip())

    def resolve(self, name: str) -> Plugin:
        """The class of a name.

        Raises:
            ConfigError: There is none such; the message lists what there is, and broken folders that may be meant.
        """
        found = self.find(name)
        if found is not None:
            return found
        known = ", ".join(f"{plugin.class_name} ({plugin.manifest.version})" for plugin in self.plugins())
        message = (
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {known or 'none'}"
        )
        if self._broken:
            message += f". Not usable: {'; '.join(broken.message for broken in self._broken)}"
        raise ConfigError(message, key="connector.class")

    def description(self, name: str | Plugin) -> ClassDescription:
        """What a class offers, from the cache or from the plugin itself.

        Raises:
            WherryError: There is no such class, the plugin cannot be asked, or does not know its own class.
        """
        plugin = self.resolve(name) if isinstance(name, str) else name
        for description in self._all_of(plugin.manifest):
            if description.class_name == plugin.class_name:
                return description
        raise ConfigError(
            f"Plugin {plugin.manifest.name} lists the class {plugin.class_name} in {MANIFEST_NAME} but does not offer "
            "it: one of the two is out of date.",
            key="connector.class",
        )

    def _add(self, folder: Path) -> None:
        try:
            manifest = Manifest.load(folder)
        except ConfigError as error:
            self._broken.append(BrokenPlugin(folder, error.message))
            _log.warning("Plugin folder left out: %s", error.message)
            return
        for manifest_class in manifest.classes:
            plugin = Plugin(manifest, manifest_class)
            rival = next((known for known in self._plugins if known.class_name == plugin.class_name), None)
            if rival is None:
                self._plugins.append(plugin)
            elif _version(manifest.version) > _version(rival.manifest.version):
                self._plugins[self._plugins.index(rival)] = plugin
            else:
                _log.info("%s of %s is hidden by %s", plugin.class_name, folder, rival.manifest.directory)
        self._by_name = _names(self._plugins)

    def _all_of(self, manifest: Manifest) -> list[ClassDescription]:
        with self._lock:
            known = self._descriptions.get(manifest.digest)
            # One lock for each plugin: a slow one keeps nobody else waiting, and is asked once.
            asking = self._describing.setdefault(manifest.digest, threading.Lock())
        if known is not None:
            return known
        with asking:
            known = self._descriptions.get(manifest.digest) or self._load(manifest)
            if known is None:
                known = self._describe(manifest)
                self._save(manifest, known)
            with self._lock:
                self._descriptions[manifest.digest] = known
            return known

    def _load(self, manifest: Manifest) -> list[ClassDescription] | None:
        if self._cache is None:
            return None
        try:
            message = plugin_pb2.DescribeResponse.FromString(self._file(self._cache, manifest).read_bytes())
        except (OSError, DecodeError):
            return None
        return [from_proto.class_description(described) for described in message.classes]

    def _save(self, manifest: Manifest, descriptions: list[ClassDescription]) -> None:
        if self._cache is None:
            return
        classes = [to_proto.class_description(description) for description in descriptions]
        content = plugin_pb2.DescribeResponse(classes=classes).SerializeToString()
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as file:
                file.write(content)
            Path(file.name).replace(self._file(self._cache, manifest))
        except OSError as error:
            _log.info("The description of plugin %s is not kept: %s", manifest.name, error)

    def _file(self, cache: Path, manifest: Manifest) -> Path:
        # A plugin made with the SDK of this release says by it what it can do.
        key = hashlib.sha256(f"{CACHE_FORMAT}\0{_release()}\0{manifest.digest}".encode()).hexdigest()[:32]
        return cache / f"{manifest.name}-{manifest.version}-{key}.pb"


def _release() -> str:
    try:
        return version("wherry")
    except PackageNotFoundError:
        return ""  # a checkout that was never installed


def descriptions_folder() -> Path:
    """Where descriptions are kept for this user."""
    return cache_folder() / "describe"


def bundled_folders() -> list[Path]:
    """Plugins that come with Wherry: beside the package when installed, at the root of a source checkout.

    What only serves tests (`UNBUNDLED`) is left out here, and of the wheel by the list in pyproject.toml; who needs it
    names its folder in `plugin.path`.
    """
    package = Path(__file__).resolve()
    # In a wheel `wherry/coordinator/plugins.py` has `wherry/sidecars` two up; in a checkout
    # `coordinator/wherry/coordinator/plugins.py` has `sidecars` four up.
    candidates = (package.parents[1] / "sidecars", package.parents[3] / "sidecars")
    home = next((folder for folder in candidates if folder.is_dir()), None)
    if home is None:
        return []
    plugins = sorted(path.parent for path in home.glob(f"*/{MANIFEST_NAME}"))
    return [folder for folder in plugins if folder.name not in UNBUNDLED]


def _folders(paths: Iterable[Path], broken: list[BrokenPlugin]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths:
        try:
            if not path.is_dir():
                broken.append(BrokenPlugin(path, f"{path} of plugin.path is no folder."))
                _log.warning("%s of plugin.path is no folder.", path)
                continue
            children = [path] if (path / MANIFEST_NAME).is_file() else sorted(path.iterdir())[:PLUGIN_FOLDERS_MAX]
        except OSError as error:
            _leave_out(path, error, broken)
            continue
        for child in children:
            try:
                _look_into(child, found, broken)
            except OSError as error:
                _leave_out(child, error, broken)
    return list(found)


def _look_into(folder: Path, found: dict[Path, None], broken: list[BrokenPlugin]) -> None:
    if (folder / MANIFEST_NAME).is_file():
        found[folder.resolve()] = None
    elif _holds_jars(folder):
        message = f"{folder} holds jars: it needs the JVM bridge, which is not in this release."
        broken.append(BrokenPlugin(folder, message))
        _log.warning("Plugin folder left out: %s", message)


def _leave_out(folder: Path, error: OSError, broken: list[BrokenPlugin]) -> None:
    """One folder that can't be looked into must not keep the others from being found."""
    message = f"{folder} of plugin.path can't be looked into: {error.strerror}."
    broken.append(BrokenPlugin(folder, message))
    _log.warning("Plugin folder left out: %s", message)


def _holds_jars(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".jar"
    return path.is_dir() and any(child.suffix == ".jar" for child in path.iterdir())


def _names(plugins: list[Plugin]) -> dict[str, Plugin]:
    """Names to classes: full class names come first, then aliases of manifests, then what follows from class names."""
    derived = {name: plugin for plugin in reversed(plugins) for name in plugin.names}
    given = {alias: plugin for plugin in reversed(plugins) for alias in plugin.manifest_class.aliases}
    return {**derived, **given, **{plugin.class_name: plugin for plugin in plugins}}


def _version(text: str) -> tuple[tuple[int, ...], bool]:
    """Orders versions by their numbers; a pre-release comes before its release."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", text.split("-")[0].split("+")[0]))
    return numbers, "-" not in text
