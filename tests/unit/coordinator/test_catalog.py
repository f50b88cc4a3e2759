"""What requests about plugins and configurations are answered."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from wherry.contract.client import Finding, Validation
from wherry.contract.config import ConfigDef, ConfigKey, ConfigType
from wherry.contract.description import ClassDescription, SinkClass
from wherry.contract.errors import ConfigError, TransientError
from wherry.coordinator.api import ApiError, BadRequestError, ConnectorType, NotFoundError
from wherry.coordinator.catalog import Catalog, rules_of
from wherry.coordinator.config.providers import Providers
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.plugins import PluginRegistry

WORKER = {"bootstrap.servers": "k:1", "offset.storage.file.filename": "/tmp/o", "key.converter": "Json"}
ENV = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
GOOD = {"name": "c", "connector.class": "OrderSource", "pw": "hidden-secret"}


@dataclass
class FakeProber:
    """Answers what it was given, and remembers what it was asked."""

    validation: Validation = field(default_factory=Validation)
    failure: Exception | None = None
    asked: tuple[object, ...] = ()

    def validate(self, manifest, class_name, config, secrets):
        self.asked = (class_name, dict(config), dict(secrets))
        if self.failure:
            raise self.failure
        return self.validation


@pytest.fixture
def registry(tmp_path):
    folder = tmp_path / "plugins/orders"
    folder.mkdir(parents=True)
    (folder / "sidecar.yaml").write_text(
        "name: orders\nversion: 1.2.3\nrun: [./run]\nenvironment: {none: true}\nclasses:\n"
        "  - {class: x.OrderSourceConnector, role: source}\n  - {class: x.OrderSinkConnector, role: sink}\n"
        "  - {class: x.Upper, role: transform}\n"
    )

    def describe(manifest):
        keys = ConfigDef([ConfigKey("rows", ConfigType.INT, "1"), ConfigKey("pw", ConfigType.PASSWORD)])
        return [ClassDescription(each.class_name, each.role, keys) for each in manifest.classes]

    return PluginRegistry([tmp_path / "plugins"], describe)


@pytest.fixture
def prober():
    return FakeProber()


@pytest.fixture
def catalog(registry, prober):
    values = {"config.providers": "env", "config.providers.env.class": ENV}
    return Catalog(registry, providers=Providers.configured(values, {"ROWS": "many", "PW": "s3cret"}), prober=prober)


def test_connectors_are_listed_by_name_without_asking_anybody(catalog):
    assert [(each.class_name, each.type, each.version) for each in catalog.plugins()] == [
        ("x.OrderSinkConnector", "sink", "1.2.3"),
        ("x.OrderSourceConnector", "source", "1.2.3"),
    ]


def test_converters_and_transformations_are_listed_on_request(catalog):
    kinds = {each.type for each in catalog.plugins(connectors_only=False)}
    assert kinds == {"source", "sink", "transformation", "predicate", "converter", "header_converter"}


def test_a_classs_own_keys_come_before_the_common_ones(catalog):
    names = [key.name for key in catalog.plugin_config("OrderSource")]
    assert names[:3] == ["rows", "pw", "name"]
    assert len(names) == 24 + 2


def test_a_converters_keys_are_told(catalog):
    assert "schemas.enable" in [key.name for key in catalog.plugin_config("JsonConverter")]


def test_a_transformations_keys_are_told_by_its_full_name_and_an_abstract_ones_are_not(catalog):
    package = "org.apache.kafka.connect.transforms."
    assert [key.name for key in catalog.plugin_config(f"{package}HoistField$Key")] == ["field"]
    with pytest.raises(ApiError, match=r"^Instantiation error$"):
        catalog.plugin_config(f"{package}HoistField")


def test_an_unknown_plugin_has_no_keys(catalog):
    with pytest.raises(NotFoundError, match=r"^Unknown plugin Nope\.$"):
        catalog.plugin_config("Nope")


def test_a_good_configuration_is_stored_as_given(catalog):
    assert catalog.check(GOOD | {"rows": "5"}) == GOOD | {"rows": "5"}


def test_errors_are_flattened_into_kafkas_text(catalog):
    with pytest.raises(BadRequestError) as refused:
        catalog.check(GOOD | {"rows": "x", "tasks.max": "0"})
    assert refused.value.message == (
        "Connector configuration is invalid and contains the following 2 error(s):\n"
        "Invalid value 0 for configuration tasks.max: Value must be at least 1\n"
        "Invalid value x for configuration rows: Not a number of type INT\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def test_a_null_of_an_optional_key_of_the_class_is_left_out(catalog):
    assert "rows" not in catalog.check(GOOD | {"rows": None})


def test_the_plugin_itself_is_asked_with_secrets_apart(catalog, prober):
    catalog.check(GOOD)
    class_name, config, secrets = prober.asked
    assert class_name == "x.OrderSourceConnector"
    assert (secrets, "pw" in config) == ({"pw": "hidden-secret"}, False)


def test_what_the_plugin_finds_is_an_error(catalog, prober):
    prober.validation = Validation((Finding("rows", ("Too few.",), ("7",)),))
    infos = catalog.validate(GOOD)
    (rows,) = [each.value for each in infos.configs if each.value.name == "rows"]
    assert (rows.errors, rows.recommended_values) == (("Too few.",), ("7",))


def test_the_plugin_is_not_asked_about_what_is_wrong_already(catalog, prober):
    catalog.validate(GOOD | {"rows": "x"})
    assert prober.asked == ()


def test_a_plugin_that_cannot_be_asked_is_an_error_of_the_worker(catalog, prober):
    prober.failure = TransientError("it hangs")
    with pytest.raises(ApiError, match="Plugin orders could not check the configuration: it hangs") as failed:
        catalog.check(GOOD)
    assert failed.value.status == 500


def test_placeholders_are_resolved_for_the_check_and_never_shown(catalog):
    infos = catalog.validate(GOOD | {"rows": "${env:ROWS}", "pw": "${env:PW}"})
    shown = {each.value.name: each.value for each in infos.configs}
    assert shown["rows"].errors == ("Invalid value ${env:ROWS} for configuration rows: Not a number of type INT",)
    assert shown["pw"].value == "${env:PW}"
    assert "s3cret" not in str(infos)


def test_placeholders_are_stored_as_placeholders(catalog, prober):
    assert catalog.check(GOOD | {"pw": "${env:PW}"})["pw"] == "${env:PW}"
    assert prober.asked[2] == {"pw": "s3cret"}


@pytest.mark.parametrize("config", [{}, {"connector.class": None}, {"connector.class": "Nope"}])
def test_no_or_an_unknown_class_is_400_on_create_and_500_on_validate(catalog, config):
    with pytest.raises(BadRequestError) as refused:
        catalog.check(config)
    with pytest.raises(ApiError) as wrapped:
        catalog.validate(config)
    assert wrapped.value.status == 500
    assert wrapped.value.message == (
        f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {refused.value.message}"
    )


def test_a_missing_class_is_told_without_values(catalog):
    with pytest.raises(BadRequestError) as refused:
        catalog.check({"name": "c", "pw": "hidden-secret"})
    assert refused.value.message == "Connector config with keys [name, pw] contains no connector type"


def test_a_transformation_is_no_connector(catalog):
    with pytest.raises(BadRequestError, match="not a connector"):
        catalog.check({"name": "c", "connector.class": "Upper"})


@pytest.mark.parametrize("plugin", ["OrderSource", "OrderSourceConnector", "Source"])
def test_the_path_may_end_as_the_class_does(catalog, plugin):
    assert catalog.validate(GOOD, plugin=plugin).error_count == 0


def test_another_class_in_the_path_is_400(catalog):
    with pytest.raises(BadRequestError) as refused:
        catalog.validate(GOOD, plugin="OrderSink")
    assert refused.value.message == "Included connector type OrderSource does not match request type OrderSink"


def test_the_type_is_the_classs_role(catalog):
    assert catalog.connector_type({"connector.class": "OrderSink"}) is ConnectorType.SINK
    assert catalog.connector_type({"connector.class": "Nope"}) is ConnectorType.UNKNOWN


def test_the_workers_converters_are_defaults():
    rules = rules_of(WorkerConfig.of({**WORKER, "value.converter": "StringConverter"}))
    assert rules.converters["key"].endswith("json.JsonConverter")
    assert rules.converters["value"].endswith("storage.StringConverter")


def test_a_worker_converter_of_another_making_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"Class MineConverter could not be found\. Converters of this release: "):
        rules_of(WorkerConfig.of({**WORKER, "value.converter": "MineConverter"}))


def test_a_guarantee_beyond_the_class_under_this_configuration_is_refused(catalog, prober):
    config = {"name": "c", "connector.class": "OrderSink", "topics": "t", "wherry.delivery": "exactly-once"}
    prober.validation = Validation((), SinkClass.IDEMPOTENT)
    with pytest.raises(BadRequestError, match="of the class idempotent, which gives effectively-once"):
        catalog.check(config)
    prober.validation = Validation((), SinkClass.TRANSACTIONAL)
    assert catalog.check(config) == config


def test_a_sink_with_more_tasks_than_can_be_kept_is_refused_by_validate_and_create_alike(catalog):
    absurd = {"name": "c", "connector.class": "OrderSink", "topics": "t", "tasks.max": "2147483647"}
    (errors,) = [each.value.errors for each in catalog.validate(absurd).configs if each.value.name == "tasks.max"]
    assert "no more than 10000" in errors[0]
    with pytest.raises(BadRequestError, match="no more than 10000"):
        catalog.check(absurd)
    assert catalog.check({**GOOD, "tasks.max": "2147483647"})["tasks.max"] == "2147483647"
