"""Config providers fill placeholders in, where they may."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.providers import ProviderError, Providers

PACKAGE = "org.apache.kafka.common.config.provider"


def providers(environ=None, **params):
    config = {"config.providers": "file,env,dir"}
    for name, kind in (("file", "File"), ("env", "EnvVar"), ("dir", "Directory")):
        config[f"config.providers.{name}.class"] = f"{PACKAGE}.{kind}ConfigProvider"
    config |= {f"config.providers.{key.replace('__', '.')}": value for key, value in params.items()}
    return Providers.configured(config, environ or {})


def resolve(text, found):
    return found.resolve({"k": text}).values["k"]


def test_a_key_of_a_properties_file_is_filled_in(tmp_path):
    (tmp_path / "s.properties").write_text("user=me\npw=a\\=b\n")
    text = f"${{file:{tmp_path}/s.properties:user}}/${{file:{tmp_path}/s.properties:pw}}"
    assert resolve(text, providers()) == "me/a=b"


def test_an_environment_variable_is_filled_in():
    assert resolve("x-${env:PW}-y", providers({"PW": "secret"})) == "x-secret-y"


def test_a_file_of_a_folder_is_filled_in_whole(tmp_path):
    (tmp_path / "pw").write_text("secret\n")
    assert resolve(f"${{dir:{tmp_path}:pw}}", providers()) == "secret\n"


def test_a_folder_that_may_not_be_entered_is_told_as_one(tmp_path, monkeypatch):
    def refusing(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refusing)
    with pytest.raises(ProviderError, match=r"Could not read file .*/pw: .*Permission denied"):
        resolve(f"${{dir:{tmp_path}:pw}}", providers())


@pytest.mark.parametrize("text", ["${env:NOPE}", "${other:x}", "${env}", "$env:PW", "${dir:/nowhere:x}", "${file::x}"])
def test_what_cannot_be_filled_in_stays(text):
    assert resolve(text, providers({"PW": "secret"})) == text


def test_nothing_is_filled_in_unless_the_worker_names_a_provider():
    assert resolve("${env:PATH}", Providers.configured({})) == "${env:PATH}"


def test_a_key_may_not_lead_out_of_its_folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "pw").write_text("secret")
    text = f"${{dir:{tmp_path}/in:../pw}}"
    assert resolve(text, providers()) == text


def test_only_allowed_paths_are_read(tmp_path):
    for folder in ("open", "shut"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pw").write_text("secret")
    (tmp_path / "open/link").symlink_to(tmp_path / "shut")
    found = providers(dir__param__allowed__paths=str(tmp_path / "open"))
    assert resolve(f"${{dir:{tmp_path}/open:pw}}", found) == "secret"
    for where in ("shut", "open/../shut", "open/link"):
        text = f"${{dir:{tmp_path}/{where}:pw}}"
        assert resolve(text, found) == text


def test_only_allowed_variables_are_read():
    found = providers({"DB_PW": "secret", "PATH": "x"}, env__param__allowlist__pattern="DB_.*")
    assert resolve("${env:DB_PW}${env:PATH}", found) == "secret${env:PATH}"


def test_a_file_that_cannot_be_read_is_an_error():
    with pytest.raises(ProviderError, match="Could not read properties from file /nowhere/s"):
        resolve("${file:/nowhere/s:x}", providers())


def test_a_provider_of_another_class_is_refused():
    with pytest.raises(ConfigError, match=r"config\.providers\.v\.class: Class x\.Vault could not be found"):
        Providers.configured({"config.providers": "v", "config.providers.v.class": "x.Vault"})


def test_what_was_filled_in_can_be_hidden_again():
    resolved = providers({"PW": "secret"}).resolve({"k": "${env:PW}", "other": "secret"})
    assert resolved.placeholders == {"k": "${env:PW}"}
    assert resolved.hide("k", "Invalid value secret") == "Invalid value ${env:PW}"
    assert resolved.hide("other", "Invalid value secret") == "Invalid value secret"


def test_a_properties_file_is_utf_8_to_kafkas_provider(tmp_path):
    (tmp_path / "s.properties").write_text("pw=grün€\n", "utf-8")
    assert resolve(f"${{file:{tmp_path}/s.properties:pw}}", providers()) == "grün€"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"file__param__allowed__paths": "etc"}, "Path etc is not absolute"),
        ({"dir__param__allowed__paths": "/,/no/where"}, "Path /no/where does not exist"),
        ({"env__param__allowlist__pattern": "("}, r"allowlist\.pattern: Invalid regex"),
        ({"env__param__ttl__ms": "soon"}, r"env\.param\.ttl\.ms: milliseconds are expected, at least 1000"),
        ({"env__param__ttl__ms": "1"}, "at least 1000"),
    ],
)
def test_a_provider_that_cannot_be_meant_so_is_refused_at_the_start(params, message):
    with pytest.raises(ConfigError, match=message):
        providers(**params)


def test_an_empty_pattern_allows_no_variable_and_a_relative_path_no_file(tmp_path, monkeypatch):
    assert resolve("${env:PW}", providers({"PW": "x"}, env__param__allowlist__pattern="")) == "${env:PW}"
    (tmp_path / "pw").write_text("secret")
    monkeypatch.chdir(tmp_path.parent)
    text = f"${{dir:{tmp_path.name}:pw}}"
    assert resolve(text, providers()) == "secret"
    assert resolve(text, providers(dir__param__allowed__paths=str(tmp_path))) == text


def test_a_variable_has_no_path():
    with pytest.raises(ProviderError, match="Path is not supported for EnvVarConfigProvider, invalid value 'p'"):
        resolve("${env:p:PW}", providers({"PW": "x"}))


def test_an_answer_holds_as_long_as_the_shortest_of_the_providers_it_is_from():
    found = providers({"PW": "x"}, env__param__ttl__ms="3000", file__param__ttl__ms="2000")
    assert found.ttl_ms == 2000
    assert found.resolve({"a": "${env:PW}"}).ttl_ms == 3000
    assert found.resolve({"a": "${dir:/:x}"}).ttl_ms is None
    assert providers().ttl_ms is None
