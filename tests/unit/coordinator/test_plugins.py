"""Plugins are found by manifest, resolved by name, and asked once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, RangeValidator
from wherry.contract.description import ClassDescription, Role
from wherry.contract.errors import ConfigError, TransientError
from wherry.coordinator.plugins import PluginRegistry, bundled_folders, descriptions_folder


@pytest.fixture
def plugin(tmp_path):
    def make(name, classes=("x.y.OrderSourceConnector",), version="1.0.0", aliases=(), role="source", under="plugins"):
        folder = tmp_path / under / f"{name}-{version}"
        folder.mkdir(parents=True)
        listed = "".join(f"  - {{class: {each}, role: {role}, aliases: [{', '.join(aliases)}]}}\n" for each in classes)
        (folder / "sidecar.yaml").write_text(
            f"name: {name}\nversion: {version}\nclasses:\n{listed}run: [./run]\nenvironment: {{none: true}}\n"
        )
        return folder

    return make


class Describer:
    """Describes every class of a manifest, and counts."""

    def __init__(self, key="a", delay_s=0.0):
        self.asked = []
        self.key = key
        self.delay_s = delay_s

    def __call__(self, manifest):
        self.asked.append(manifest.name)
        time.sleep(self.delay_s)
        config = ConfigDef([ConfigKey(self.key, ConfigType.INT, "1", validators=(RangeValidator(min=0),))])
        return [ClassDescription(each.class_name, each.role, config, each.aliases) for each in manifest.classes]


def registry(tmp_path, describe=None, **options):
    return PluginRegistry([tmp_path / "plugins"], describe or Describer(), **options)


@pytest.mark.parametrize(
    "name", ["x.y.OrderSourceConnector", "OrderSourceConnector", "OrderSource", "Orders", " OrderSource "]
)
def test_a_class_answers_to_its_names(tmp_path, plugin, name):
    plugin("orders", aliases=("Orders",))
    assert registry(tmp_path).resolve(name).class_name == "x.y.OrderSourceConnector"


def test_an_unknown_class_is_refused_with_what_there_is(tmp_path, plugin):
    plugin("orders")
    with pytest.raises(ConfigError) as refused:
        registry(tmp_path).resolve("Nope")
    assert refused.value.message.startswith(
        "Failed to find any class that implements Connector and which name matches Nope, available connectors are: "
        "x.y.OrderSourceConnector (1.0.0)"
    )


def test_a_broken_manifest_is_listed_and_stops_nobody(tmp_path, plugin):
    plugin("orders")
    (plugin("broken", classes=("x.Broken",)) / "sidecar.yaml").write_text("name: [")
    found = registry(tmp_path)
    assert [each.class_name for each in found.plugins()] == ["x.y.OrderSourceConnector"]
    assert "sidecar.yaml" in found.broken()[0].message
    with pytest.raises(ConfigError, match=r"Not usable: .*sidecar\.yaml"):
        found.resolve("x.Broken")


def test_a_folder_of_jars_says_what_it_needs(tmp_path):
    (tmp_path / "plugins/debezium").mkdir(parents=True)
    (tmp_path / "plugins/debezium/a.jar").touch()
    assert "JVM bridge, which is not in this release" in registry(tmp_path).broken()[0].message


def test_a_path_that_is_no_folder_is_listed(tmp_path):
    assert "is no folder" in registry(tmp_path).broken()[0].message


def test_a_folder_that_can_not_be_looked_into_hides_no_other(tmp_path, plugin, monkeypatch):
    plugin("orders")
    (tmp_path / "plugins" / "lost+found").mkdir()
    is_file = Path.is_file

    def refusing(path):
        if path.parent.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refusing)
    found = registry(tmp_path)
    assert [each.class_name for each in found.plugins()] == ["x.y.OrderSourceConnector"]
    assert "lost+found of plugin.path can't be looked into: Permission denied" in found.broken()[0].message


def test_a_path_may_be_a_plugin_itself(plugin):
    folder = plugin("orders")
    assert len(PluginRegistry([folder], Describer()).plugins()) == 1


@pytest.mark.parametrize("versions", [("1.9.0", "1.10.0"), ("1.10.0", "1.9.0"), ("1.10.0-rc1", "1.10.0")])
def test_of_two_versions_the_newest_counts(tmp_path, plugin, versions):
    for version in versions:
        plugin("orders", version=version)
    (found,) = registry(tmp_path).plugins()
    assert found.manifest.version == "1.10.0"


def test_of_equal_versions_the_first_folder_counts(tmp_path, plugin):
    first = plugin("orders")
    plugin("orders", under="more")
    found = PluginRegistry([tmp_path / "plugins", tmp_path / "more"], Describer())
    assert found.resolve("OrderSource").manifest.directory == first


def test_a_given_alias_wins_over_a_simple_name_and_a_full_name_over_both(tmp_path, plugin):
    plugin("a", classes=("a.JdbcSinkConnector",), role="sink")
    plugin("b", classes=("b.JdbcSinkConnector",), role="sink", aliases=("JdbcSink", "a.JdbcSinkConnector2"))
    found = registry(tmp_path)
    assert found.resolve("JdbcSink").class_name == "b.JdbcSinkConnector"
    assert found.resolve("JdbcSinkConnector").class_name == "a.JdbcSinkConnector"
    assert found.resolve("a.JdbcSinkConnector").class_name == "a.JdbcSinkConnector"


def test_a_plugin_is_described_once(tmp_path, plugin):
    plugin("orders", classes=("x.A", "x.B"))
    describe = Describer()
    found = registry(tmp_path, describe)
    assert [found.description(name).class_name for name in ("x.A", "x.B", "x.A")] == ["x.A", "x.B", "x.A"]
    assert describe.asked == ["orders"]


def test_a_description_is_kept_on_disk_until_the_folder_changes(tmp_path, plugin):
    folder = plugin("orders")
    cache = tmp_path / "cache"
    first = registry(tmp_path, Describer(), cache=cache).description("OrderSource")
    again = Describer()
    assert registry(tmp_path, again, cache=cache).description("OrderSource") == first
    assert again.asked == []
    (folder / "code.py").write_text("changed = True")
    assert registry(tmp_path, Describer("b"), cache=cache).description("OrderSource").config.keys[0].name == "b"


def test_a_damaged_cache_is_asked_around(tmp_path, plugin):
    plugin("orders")
    cache = tmp_path / "cache"
    registry(tmp_path, cache=cache).description("OrderSource")
    for file in cache.iterdir():
        file.write_bytes(b"\xff\xff\xff")
    describe = Describer()
    registry(tmp_path, describe, cache=cache).description("OrderSource")
    assert describe.asked == ["orders"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, plugin):
    plugin("orders")
    (tmp_path / "cache").write_text("a file")
    assert registry(tmp_path, cache=tmp_path / "cache").description("OrderSource")


def test_a_plugin_that_could_not_be_asked_is_asked_again(tmp_path, plugin):
    plugin("orders")
    answers = [TransientError("not now")]
    describe = Describer()

    def once_failing(manifest):
        if answers:
            raise answers.pop()
        return describe(manifest)

    found = registry(tmp_path, once_failing)
    with pytest.raises(TransientError):
        found.description("OrderSource")
    assert found.description("OrderSource")


def test_many_who_ask_at_once_wait_for_one_answer(tmp_path, plugin):
    plugin("orders")
    describe = Describer(delay_s=0.05)
    found = registry(tmp_path, describe)
    threads = [threading.Thread(target=found.description, args=("OrderSource",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert describe.asked == ["orders"]


def test_a_class_that_only_the_manifest_knows_is_told(tmp_path, plugin):
    plugin("orders")
    with pytest.raises(ConfigError, match="does not offer it"):
        registry(tmp_path, lambda manifest: []).description("OrderSource")


def test_a_role_is_the_manifests(tmp_path, plugin):
    plugin("orders", role="sink")
    assert registry(tmp_path).resolve("OrderSource").role is Role.SINK


def test_the_plugins_of_a_checkout_are_found():
    found = PluginRegistry(bundled_folders(), Describer())
    assert found.resolve("FileStreamSource").manifest.name == "filestream"


def test_the_sidecar_that_misbehaves_is_no_plugin_unless_it_is_named():
    assert PluginRegistry(bundled_folders(), Describer()).find("HostileSource") is None
    checkout = bundled_folders()[0].parent
    assert PluginRegistry([checkout / "hostile"], Describer()).find("HostileSource") is not None


def test_descriptions_are_kept_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path))
    assert descriptions_folder() == tmp_path / "describe"
