"""Configurations that are wrong, or odd: what validation finds in each, and what create answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, Ask, Step

SOURCE: Mapping[str, str] = {"name": "v-{x}", "connector.class": SOURCE_CLASS, "file": "{dir}/f", "topic": "t-{x}"}
SINK: Mapping[str, str] = {"name": "v-{x}", "connector.class": SINK_CLASS, "file": "{dir}/f", "topics": "t-{x}"}
JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

SOURCES: Mapping[str, Mapping[str, Any]] = {
    "tasks.max zero": {"tasks.max": "0"},
    "tasks.max negative": {"tasks.max": "-5"},
    "tasks.max fraction": {"tasks.max": "1.5"},
    "tasks.max too large": {"tasks.max": "2147483648"},
    "tasks.max largest": {"tasks.max": "2147483647"},
    "tasks.max plus": {"tasks.max": "+7"},
    "tasks.max blanks": {"tasks.max": " 3 "},
    "tasks.max empty": {"tasks.max": ""},
    "tasks.max null": {"tasks.max": None},
    "tasks.max as number": {"tasks.max": 2},
    "tasks.max arabic": {"tasks.max": "\u0663"},
    "enforce neither": {"tasks.max.enforce": "yes"},
    "enforce in capitals": {"tasks.max.enforce": "FALSE"},
    "tolerance in capitals": {"errors.tolerance": "ALL"},
    "tolerance none": {"errors.tolerance": "none"},
    "tolerance empty": {"errors.tolerance": ""},
    "tolerance null": {"errors.tolerance": None},
    "reload other": {"config.action.reload": "sometimes"},
    "reload none": {"config.action.reload": "none"},
    "reload null": {"config.action.reload": None},
    "exactly once other": {"exactly.once.support": "maybe"},
    "exactly once lower": {"exactly.once.support": "requested"},
    "exactly once null": {"exactly.once.support": None},
    "boundary other": {"transaction.boundary": "batch"},
    "boundary in capitals": {"transaction.boundary": "POLL"},
    "boundary interval": {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "100"},
    "boundary interval wrong": {"transaction.boundary.interval.ms": "x"},
    "boundary interval negative": {"transaction.boundary.interval.ms": "-1"},
    "boundary interval null": {"transaction.boundary.interval.ms": None},
    "boundary connector": {"transaction.boundary": "connector"},
    "offsets topic empty": {"offsets.storage.topic": ""},
    "offsets topic blank": {"offsets.storage.topic": "  "},
    "offsets topic null": {"offsets.storage.topic": None},
    "offsets topic": {"offsets.storage.topic": "mine"},
    "retry timeout negative": {"errors.retry.timeout": "-2"},
    "retry timeout wrong": {"errors.retry.timeout": "1s"},
    "retry delay negative": {"errors.retry.delay.max.ms": "-1"},
    "log enable wrong": {"errors.log.enable": "1"},
    "log messages": {"errors.log.include.messages": "TRUE"},
    "batch size zero": {"batch.size": "0"},
    "batch size null": {"batch.size": None},
    "batch size wrong": {"batch.size": "1e3"},
    "topic empty": {"topic": ""},
    "topic null": {"topic": None},
    "unknown keys": {"foo": "bar", "topics": "x"},
    "unknown key null": {"foo": None},
    "name empty": {"name": ""},
    "name null": {"name": None},
    "name with control": {"name": "a\u0001b\u007fc"},
    "name blank": {"name": "   "},
    "creation groups twice": {"topic.creation.groups": "a,a"},
    "creation groups": {"topic.creation.groups": "a, b", "topic.creation.a.include": "x"},
    "creation groups empty": {"topic.creation.groups": " "},
    "creation groups null": {"topic.creation.groups": None},
    "creation partitions zero": {
        "topic.creation.default.partitions": "0",
        "topic.creation.default.replication.factor": "x",
    },
    "dead letters on a source": {"errors.deadletterqueue.topic.name": "d"},
    "plugin version missing": {"connector.plugin.version": "9.9"},
    "plugin version range": {"connector.plugin.version": "(,99]"},
    "plugin version broken": {"connector.plugin.version": "[1"},
    "plugin version latest": {"connector.plugin.version": "latest"},
    "converter version": {"key.converter": JSON, "key.converter.plugin.version": "4.3.1"},
    "converter version missing": {"key.converter": JSON, "key.converter.plugin.version": "[5,)"},
    "converter version alone": {"key.converter.plugin.version": "9"},
    "key converter json": {"key.converter": JSON},
    "key converter short": {"key.converter": "JsonConverter"},
    "key converter shortest": {"value.converter": "Json", "value.converter.schemas.enable": "maybe"},
    "converter unknown": {"value.converter": "com.acme.Converter"},
    "converter empty": {"value.converter": ""},
    "converter null": {"value.converter": None},
    "converter no converter": {"value.converter": "java.lang.String"},
    "converter of headers for values": {"value.converter": SIMPLE},
    "header converter": {"header.converter": JSON, "header.converter.schemas.enable": "false"},
    "header converter simple": {"header.converter": SIMPLE},
    "header converter string": {"header.converter": "StringConverter"},
    "header converter unknown": {"header.converter": "x.Y"},
    "converter wrong cache": {"key.converter": JSON, "key.converter.schemas.cache.size": "x"},
    "converter decimal format": {"key.converter": JSON, "key.converter.decimal.format": "hex"},
    "converter keys without it": {"key.converter.schemas.enable": "maybe"},
    "converter bytes": {"key.converter": "ByteArrayConverter", "value.converter": "StringConverter"},
    "converter encoding": {"key.converter": "StringConverter", "key.converter.converter.encoding": "x"},
    "override": {"producer.override.linger.ms": "5"},
    "override unknown": {"producer.override.foo": "5", "admin.override.bar": "6"},
    "override password": {"producer.override.sasl.jaas.config": "secret"},
    "override list": {"producer.override.bootstrap.servers": "a:1,b:2"},
    "override class": {"producer.override.partitioner.class": "x"},
    "override admin": {"admin.override.client.id": "me", "admin.override.retries": "3"},
    "override of a consumer on a source": {"consumer.override.max.poll.records": "5"},
    "override wrong": {"producer.override.linger.ms": "x"},
    "override null": {"producer.override.linger.ms": None},
}
SINKS: Mapping[str, Mapping[str, Any]] = {
    "no topics": {"topics": None},
    "topics empty": {"topics": ""},
    "topics blank": {"topics": " , "},
    "topics twice": {"topics": "a,b,a"},
    "topics with empty": {"topics": "a,,b"},
    "topics with blanks": {"topics": " a , b "},
    "regex": {"topics": None, "topics.regex": "t.*"},
    "regex broken": {"topics": "", "topics.regex": "t[*"},
    "regex broken group": {"topics": "", "topics.regex": "t(a"},
    "regex only": {"topics": "", "topics.regex": "t.*"},
    "regex and topics": {"topics.regex": "t.*"},
    "regex empty": {"topics.regex": ""},
    "regex null": {"topics.regex": None},
    "dead letters": {"errors.deadletterqueue.topic.name": "d"},
    "dead letters own topic": {"topics": "a,d", "errors.deadletterqueue.topic.name": "d"},
    "dead letters matched": {"topics": "", "topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dead"},
    "dead letters blank": {"errors.deadletterqueue.topic.name": "  "},
    "dead letters null": {"errors.deadletterqueue.topic.name": None},
    "dead letters replication zero": {"errors.deadletterqueue.topic.replication.factor": "0"},
    "dead letters replication large": {"errors.deadletterqueue.topic.replication.factor": "40000"},
    "dead letters headers wrong": {"errors.deadletterqueue.context.headers.enable": "on"},
    "sink with source keys": {"topic.creation.groups": "a", "exactly.once.support": "required"},
    "override consumer": {"consumer.override.max.poll.records": "5", "consumer.override.auto.offset.reset": "latest"},
    "override consumer wrong": {"consumer.override.max.poll.records": "x"},
    "override consumer enum": {"consumer.override.auto.offset.reset": "sometimes"},
    "override producer on a sink": {"producer.override.acks": "1"},
    "override dead letters": {
        "errors.deadletterqueue.topic.name": "d",
        "producer.override.acks": "1",
        "admin.override.retries": "x",
    },
    "override own group": {"consumer.override.group.id": "mine"},
}


def _validated() -> Iterator[Ask]:
    for base, kind, table in ((SOURCE, "Source", SOURCES), (SINK, "Sink", SINKS)):
        path = f"/connector-plugins/FileStream{kind}/config/validate"
        for name, changes in table.items():
            yield Ask(f"validate {kind.lower()}: {name}", "PUT", path, {**base, **changes})


_REFUSED_SOURCES = (
    *("tasks.max empty", "tolerance in capitals", "unknown key null", "name with control", "creation groups twice"),
    *("converter unknown", "override wrong", "boundary other"),
)
_REFUSED_SINKS = (
    *("no topics", "topics twice", "regex broken", "regex and topics", "dead letters own topic"),
    *("dead letters matched", "override consumer wrong"),
)


def _refused() -> Iterator[Ask]:
    wrong = (("source", SOURCE, SOURCES, _REFUSED_SOURCES), ("sink", SINK, SINKS, _REFUSED_SINKS))
    for kind, base, table, names in wrong:
        for name in names:
            config = {**base, **table[name]}
            path = f"/connectors/{config['name']}/config" if "control" not in name else "/connectors/x/config"
            yield Ask(f"refuse {kind}: {name}", "PUT", path, config)


def _paths() -> Iterator[Ask]:
    for plugin in (
        "FileStreamSourceConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "Source",
        "SourceConnector",
        "StreamSource",
        "filestreamsource",
        "FileStreamSink",
        "Connector",
        "Nothing",
        "JsonConverter",
        "e",
    ):
        yield Ask(f"validate as {plugin}", "PUT", f"/connector-plugins/{plugin}/config/validate", dict(SOURCE))
    for name, config in (
        ("without class", {"name": "v", "topic": "t"}),
        ("null class", {"name": "v", "connector.class": None}),
        ("empty class", {"connector.class": ""}),
        ("unknown class", {"connector.class": "com.acme.Nothing"}),
        ("class that is a converter", {"connector.class": JSON}),
        ("class by its short name", {**SOURCE, "connector.class": "FileStreamSource"}),
        ("class with blanks", {**SOURCE, "connector.class": f" {SOURCE_CLASS} "}),
        ("nothing", {}),
        ("little", {"connector.class": "FileStreamSink"}),
    ):
        path = "/connector-plugins/FileStreamSource/config/validate"
        yield Ask(f"validate {name}", "PUT", path, config)
        yield Ask(f"put {name}", "PUT", "/connectors/v-{x}/config", config)


def _plugin_configs() -> Iterator[Ask]:
    names = (
        "FileStreamSource",
        "FileStreamSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        JSON,
        "JsonConverter",
        "Json",
        "StringConverter",
        "ByteArrayConverter",
        "BooleanConverter",
        "LongConverter",
        "Filter",
        "HoistField$Value",
        "org.apache.kafka.connect.transforms.HoistField$Value",
        "org.apache.kafka.connect.transforms.HoistField",
        "TopicNameMatches",
        "RecordIsTombstone",
        "SimpleHeaderConverter",
        "org.apache.kafka.connect.storage.StringConverter",
        "Source",
        "java.lang.String",
        "org.apache.kafka.common.config.provider.FileConfigProvider",
        "AllConnectorClientConfigOverridePolicy",
    )
    for name in names:
        yield Ask(f"keys of {name}", "GET", f"/connector-plugins/{name}/config")
    for version in ("", "latest", "4.3.1", "[4.0,5.0)", "9.9", "[1", "LATEST"):
        yield Ask(f"keys at version '{version}'", "GET", f"/connector-plugins/JsonConverter/config?version={version}")
    for only in ("true", "True", "", "false", "0", "FALSE", "x"):
        yield Ask(
            f"plugins with connectorsOnly={only}",
            "GET",
            f"/connector-plugins?connectorsOnly={only}",
            only=lambda found: sorted({each["type"] for each in found}),
        )
    yield Ask(
        "plugins of all kinds",
        "GET",
        "/connector-plugins?connectorsOnly=false",
        only=lambda found: [each for each in found if _is_kafkas(each["class"])],
    )


def _is_kafkas(class_name: str) -> bool:
    return class_name.startswith("org.apache.kafka.connect.") and ".mirror." not in class_name


STEPS: tuple[Step, ...] = (
    *_paths(),
    Ask("delete what was created", "DELETE", "/connectors/v-{x}"),
    *_plugin_configs(),
    *_validated(),
    *_refused(),
)
