"""The worker file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.worker import WorkerConfig

GOOD = {
    "bootstrap.servers": "a:9092, b:9092",
    "key.converter": "Json",
    "value.converter": "Json",
    "offset.storage.file.filename": "/tmp/o",
}


def test_defaults_are_kafka_connects():
    worker = WorkerConfig.of(GOOD)
    assert worker.bootstrap_servers == "a:9092,b:9092"
    assert worker.listeners == ("http://:8083",)
    assert worker.offset_flush_interval_ms == 60_000
    assert worker.shutdown_timeout_ms == 5_000
    assert worker.plugin_path == ()
    assert worker.topic_tracking
    assert worker.spark_master == "local[64,4]"


@pytest.mark.parametrize("key", GOOD)
def test_a_required_key_is_missed_by_name(key):
    with pytest.raises(ConfigError, match=f'Missing required configuration "{key}" which has no default value.'):
        WorkerConfig.of({name: value for name, value in GOOD.items() if name != key})


def test_a_required_key_with_a_typo_is_told_with_what_is_written():
    given = {name: value for name, value in GOOD.items() if name != "key.converter"}
    with pytest.raises(ConfigError, match=r"There is key\.convertor: did you mean key\.converter\?"):
        WorkerConfig.of({**given, "key.convertor": "Json"})


def test_a_wrong_value_is_told_with_file_and_key(tmp_path):
    path = tmp_path / "w.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in GOOD.items()) + "\noffset.flush.interval.ms=soon\n")
    with pytest.raises(ConfigError, match=r"w\.properties: Invalid value soon .*offset\.flush\.interval\.ms"):
        WorkerConfig.load(path)


def test_a_distributed_workers_file_is_known_too():
    worker = WorkerConfig.of({**GOOD, "group.id": "g", "config.storage.topic": "c", "rebalance.timeout.ms": "1"})
    assert worker.unknown == ()


def test_a_distributed_workers_file_is_told_what_it_lacks():
    given = {key: value for key, value in GOOD.items() if "offset" not in key}
    with pytest.raises(ConfigError, match="This is the file of a distributed worker"):
        WorkerConfig.of({**given, "group.id": "g"})


def test_distributed_mode_demands_its_own_keys():
    with pytest.raises(ConfigError, match=r"group\.id"):
        WorkerConfig.of(GOOD, distributed=True)


@pytest.mark.parametrize(
    "key",
    ["producer.linger.ms", "value.converter.schemas.enable", "config.providers.f.class", "wherry.spark.executor.cores",
     "ssl.truststore.location", "listeners.https.ssl.keystore.location"],
)  # fmt: skip
def test_keys_that_others_read_are_no_strangers(key):
    assert WorkerConfig.of({**GOOD, key: "x"}).unknown == ()


def test_an_unknown_key_is_kept_and_named_with_the_one_probably_meant(caplog):
    worker = WorkerConfig.of({**GOOD, "ofset.flush.interval.ms": "1", "my.own": "2"})
    with caplog.at_level(logging.WARNING):
        worker.warn_unknown()
    assert worker.values["my.own"] == "2"
    assert "Did you mean offset.flush.interval.ms?" in caplog.text
    assert "my.own is not known and does nothing." in caplog.text


def test_placeholders_of_the_file_itself_are_filled_in(tmp_path):
    secrets = tmp_path / "s.properties"
    secrets.write_text("where=k:9092")
    worker = WorkerConfig.of(
        {
            **GOOD,
            "bootstrap.servers": f"${{file:{secrets}:where}}",
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
    )
    assert worker.bootstrap_servers == "k:9092"


def test_spark_settings_are_passed_on_without_our_prefix():
    worker = WorkerConfig.of({**GOOD, "wherry.spark.master": "local[2]", "wherry.spark.ui.enabled": "true"})
    assert (worker.spark_master, worker.spark_settings) == ("local[2]", {"spark.ui.enabled": "true"})


@pytest.mark.parametrize(
    ("extra", "ports", "worker_id"),
    [
        ({"listeners": "http://127.0.0.1:8083"}, [], "127.0.0.1:8083"),
        ({"listeners": "http://127.0.0.1:0"}, [4711], "127.0.0.1:4711"),
        ({"rest.advertised.host.name": "w1", "rest.advertised.port": "80"}, [8083], "w1:80"),
        ({"listeners": "http://[::1]:8083"}, [], "::1:8083"),
        ({"listeners": "http://a:1,https://b:2", "rest.advertised.listener": "HTTPS"}, [], "b:2"),
        ({"listeners": "http://a:0,https://b:0", "rest.advertised.listener": "https"}, [11, 12], "b:12"),
    ],
)
def test_the_worker_id_is_the_advertised_address(extra, ports, worker_id):
    assert WorkerConfig.of({**GOOD, **extra}).worker_id(ports) == worker_id


@pytest.mark.parametrize(
    ("extra", "url"),
    [
        ({"listeners": "https://a:1,http://b:2"}, "https://a:1"),
        ({"listeners": "https://a:1,http://b:2", "rest.advertised.listener": "http"}, "http://b:2"),
        ({"listeners": "http://[::1]:8083"}, "http://[::1]:8083"),
        (
            {"listeners": "HTTPS://a:1", "rest.advertised.host.name": "w1", "rest.advertised.port": "80"},
            "https://w1:80",
        ),
    ],
)
def test_other_workers_are_told_the_listener_that_is_advertised(extra, url):
    assert WorkerConfig.of({**GOOD, **extra}).advertised_url() == url


@pytest.mark.parametrize("wanted", ["https", "ftp"])
def test_an_advertised_listener_that_is_none_is_refused(wanted):
    worker = WorkerConfig.of({**GOOD, "listeners": "http://a:1", "rest.advertised.listener": wanted})
    with pytest.raises(ConfigError, match=f"Invalid value {wanted} for configuration rest.advertised.listener"):
        worker.worker_id()


def test_topic_tracking_can_be_switched_off():
    worker = WorkerConfig.of({**GOOD, "topic.tracking.enable": "false"})
    assert not worker.topic_tracking
    assert not worker.topic_tracking_reset


def test_the_plugin_path_is_a_list_of_folders():
    assert WorkerConfig.of({**GOOD, "plugin.path": "/a, /b"}).plugin_path == (Path("/a"), Path("/b"))


def test_the_admin_client_takes_the_workers_connection_and_names_what_it_cannot_use(caplog):
    config = WorkerConfig.of({**GOOD, "security.protocol": "SSL", "admin.foo": "1", "producer.acks": "1"})
    with caplog.at_level(logging.WARNING):
        found = config.admin_config()
        config.warn_clients()
    assert (found["bootstrap.servers"], found["security.protocol"]) == (config.values["bootstrap.servers"], "SSL")
    assert "acks" not in found
    assert "Worker, admin: the client setting foo is ignored: librdkafka has no counterpart" in caplog.text


def test_client_settings_without_effect_are_named_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    worker = WorkerConfig.of(
        {
            **GOOD, "consumer.max.poll.records": "1", "producer.key.serializer": "x", "producer.linger.ms": "1",
            "admin.ssl.truststore.location": "/none.jks", "consumer.isolation.levle": "1",
        }
    )  # fmt: skip
    with caplog.at_level("INFO"):
        worker.warn_clients()
    told = [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
    ignored = "WARNING Worker, consumer: the client setting {} is ignored: "
    assert told == [
        "INFO Worker, producer: the client setting key.serializer has no meaning here: converters make the bytes",
        ignored.format("max.poll.records") + "batches are sized by bytes here, under load only",
        ignored.format("isolation.levle") + "no consumer has it; did you mean isolation.level?",
        "WARNING Worker, admin: connectors cannot use these settings: ssl.truststore.location: The key store "
        "/none.jks cannot be read: No such file or directory.",
    ]


def test_variables_alone_can_make_a_worker():
    environ = {f"CONNECT_{key.replace('.', '_').upper()}": value for key, value in GOOD.items()}
    assert WorkerConfig.load(None, environ={**environ, "HOME": "/"}).values == GOOD


def test_variables_go_before_the_file(tmp_path, caplog):
    path = tmp_path / "w.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in GOOD.items()))
    with caplog.at_level("INFO"):
        worker = WorkerConfig.load(path, environ={"CONNECT_BOOTSTRAP_SERVERS": "c:1", "CONNECT_LOG4J_LOGGERS": "x"})
    assert worker.bootstrap_servers == "c:1"
    assert "before the worker file's: bootstrap.servers" in caplog.text


def test_without_file_and_variables_the_sentence_says_what_to_give():
    with pytest.raises(ConfigError, match="name a worker file, or set CONNECT_"):
        WorkerConfig.load(None, environ={"PATH": "/"})
