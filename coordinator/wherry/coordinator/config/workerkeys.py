"""Tables of the worker's keys: names, types and defaults of Kafka Connect 4.3, and ours under `wherry.`."""

from __future__ import annotations

from wherry.contract.config import ConfigKey, ConfigType, Importance, NonEmptyValidator, OneOfValidator, RangeValidator

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
BOOLEAN, STRING, INT, SHORT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.SHORT
LONG, LIST, CLASS, PASSWORD = ConfigType.LONG, ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD

SIMPLE_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def _key(
    name: str, type_: ConfigType, default: str | None, documentation: str = "", *, importance: Importance = LOW
) -> ConfigKey:
    return ConfigKey(name, type_, default, importance=importance, documentation=documentation)


def _one_of(name: str, default: str, *values: str, ignore_case: bool = False) -> ConfigKey:
    check = OneOfValidator(values, ignore_case)
    return ConfigKey(name, STRING, default, importance=LOW, validators=(check,))


def _at_least(name: str, type_: ConfigType, default: str, minimum: int, documentation: str = "") -> ConfigKey:
    check = RangeValidator(min=minimum)
    return ConfigKey(name, type_, default, importance=LOW, documentation=documentation, validators=(check,))


def _required(name: str, type_: ConfigType, documentation: str) -> ConfigKey:
    check = () if type_ is CLASS else (NonEmptyValidator(),)
    return ConfigKey(name, type_, required=True, importance=HIGH, documentation=documentation, validators=check)


COMMON_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "bootstrap.servers",
        LIST,
        required=True,
        importance=HIGH,
        documentation="Brokers to find the Kafka cluster by, as host:port,…",
        validators=(NonEmptyValidator(),),
    ),
    _required("key.converter", CLASS, "Converter between stored bytes and keys."),
    _required("value.converter", CLASS, "Converter between stored bytes and values."),
    _key("header.converter", CLASS, SIMPLE_HEADER_CONVERTER, "Converter between stored bytes and header values."),
    _key("key.converter.plugin.version", STRING, None),
    _key("value.converter.plugin.version", STRING, None),
    _key("header.converter.plugin.version", STRING, None),
    _one_of("client.dns.lookup", "use_all_dns_ips", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    _key("task.shutdown.graceful.timeout.ms", LONG, "5000", "Time for all tasks together to end."),
    _key("offset.flush.interval.ms", LONG, "60000", "How often positions are committed."),
    _key("offset.flush.timeout.ms", LONG, "5000"),
    _key("plugin.path", LIST, None, "Folders that hold plugins."),
    _one_of(
        "plugin.discovery", "hybrid_warn", "only_scan", "hybrid_warn", "hybrid_fail", "service_load", ignore_case=True
    ),
    _key("listeners", LIST, "http://:8083", "Where the REST API listens."),
    _key("rest.advertised.host.name", STRING, None, "Host that statuses and other workers see."),
    _key("rest.advertised.port", INT, None),
    _key("rest.advertised.listener", STRING, None, "Scheme of the listener that others are told: http or https."),
    _key("admin.listeners", LIST, None),
    _key("access.control.allow.origin", STRING, ""),
    _key("access.control.allow.methods", STRING, ""),
    _key("rest.extension.classes", LIST, ""),
    _key("response.http.headers.config", STRING, ""),
    _one_of("ssl.client.auth", "none", "required", "requested", "none"),
    _key("config.providers", LIST, ""),
    _key("connector.client.config.override.policy", STRING, "All"),
    _key("connector.client.config.override.allowlist", LIST, ""),
    _key("topic.tracking.enable", BOOLEAN, "true"),
    _key("topic.tracking.allow.reset", BOOLEAN, "true"),
    _key("topic.creation.enable", BOOLEAN, "true"),
    _at_least("metrics.sample.window.ms", LONG, "30000", 0),
    _at_least("metrics.num.samples", INT, "2", 1),
    _one_of("metrics.recording.level", "INFO", "INFO", "DEBUG"),
    _key("metric.reporters", LIST, ""),
    _key("client.id", STRING, ""),
    _key("auto.include.jmx.reporter", BOOLEAN, "true"),
    _at_least("request.timeout.ms", INT, "40000", 0),
    _key("security.protocol", STRING, "PLAINTEXT"),
)

STANDALONE_KEYS: tuple[ConfigKey, ...] = (
    _required("offset.storage.file.filename", STRING, "File that keeps the positions of sources."),
)

DISTRIBUTED_KEYS: tuple[ConfigKey, ...] = (
    _required("group.id", STRING, "Name of the cluster of workers."),
    _required("config.storage.topic", STRING, "Topic that keeps connectors."),
    _required("offset.storage.topic", STRING, "Topic that keeps positions of sources."),
    _required("status.storage.topic", STRING, "Topic that keeps states."),
    _key("config.storage.replication.factor", SHORT, "3"),
    _key("offset.storage.replication.factor", SHORT, "3"),
    _key("offset.storage.partitions", INT, "25"),
    _key("status.storage.replication.factor", SHORT, "3"),
    _key("status.storage.partitions", INT, "5"),
    _key("internal.topics.automatic.creation.enable", BOOLEAN, "true"),
    _key("session.timeout.ms", INT, "10000"),
    _key("heartbeat.interval.ms", INT, "3000"),
    _key("rebalance.timeout.ms", INT, "60000"),
    _one_of("connect.protocol", "sessioned", "eager", "compatible", "sessioned", ignore_case=True),
    _at_least("scheduled.rebalance.max.delay.ms", INT, "300000", 0),
    _key("worker.sync.timeout.ms", INT, "3000"),
    _key("worker.unsync.backoff.ms", INT, "300000"),
    _one_of("exactly.once.source.support", "disabled", "disabled", "preparing", "enabled", ignore_case=True),
    _key("inter.worker.key.generation.algorithm", STRING, "HmacSHA256"),
    _key("inter.worker.key.size", INT, None),
    _key("inter.worker.key.ttl.ms", INT, "3600000"),
    _key("inter.worker.signature.algorithm", STRING, "HmacSHA256"),
    _key("inter.worker.verification.algorithms", LIST, "HmacSHA256"),
    _at_least("metadata.max.age.ms", LONG, "300000", 0),
    _key("send.buffer.bytes", INT, "131072"),
    _key("receive.buffer.bytes", INT, "32768"),
    _key("connections.max.idle.ms", LONG, "540000"),
    _key("socket.connection.setup.timeout.ms", LONG, "10000"),
    _key("socket.connection.setup.timeout.max.ms", LONG, "30000"),
    _at_least("reconnect.backoff.ms", LONG, "50", 0),
    _at_least("reconnect.backoff.max.ms", LONG, "1000", 0),
    _at_least("retry.backoff.ms", LONG, "100", 0),
    _at_least("retry.backoff.max.ms", LONG, "1000", 0),
    _key("metadata.recovery.strategy", STRING, "rebootstrap"),
    _key("metadata.recovery.rebootstrap.trigger.ms", LONG, "300000"),
    _key("metadata.cluster.check.enable", BOOLEAN, "true"),
    _key("bootstrap.resolve.timeout.ms", LONG, "0"),
)

# Whoever may write a connector's configuration could run code on a worker: for the operator to allow.
PYTHON_KEY = "wherry.transforms.python.enabled"

OWN_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "wherry.standby",
        STRING,
        "warm",
        importance=LOW,
        documentation="Whether Spark and plugins wait where no connectors run (warm), or start with the lead (cold).",
        validators=(OneOfValidator(("warm", "cold")),),
    ),
    _at_least("wherry.leader.session.timeout.ms", INT, "6000", 1000, "Silence after which another coordinator leads."),
    _key("wherry.spark.master", STRING, "local[64,4]", "Spark's master; every wherry.spark.X is passed as spark.X."),
    _at_least("wherry.lease.starts.max", INT, "0", 0, "Leases that start at once on a machine; 0 goes by its cores."),
    _at_least("wherry.rebalance.window.ms", LONG, "30000", 0, "How long executors stay uneven before leases move."),
    _at_least("wherry.idle.park.ms", LONG, "30000", 0, "Idle time after which a task's lease ends; 0 never parks."),
    _at_least("wherry.lease.report.interval.ms", INT, "1000", 50, "How often a lease reports."),
    _at_least("wherry.lease.timeout.ms", INT, "10000", 1000, "Silence after which a lease is lost."),
    _key("wherry.restart.enabled", BOOLEAN, "true", "Whether failed tasks are started again by themselves."),
    _at_least("wherry.restart.base.ms", LONG, "1000", 1, "Wait before the first restart; it grows with each."),
    _at_least("wherry.restart.delay.max.ms", LONG, "60000", 1, "Longest wait between restarts."),
    _key("wherry.restart.max", INT, "10", "Restarts in a row after which a task stays FAILED; -1 never gives up."),
    _at_least("wherry.restart.healthy.ms", LONG, "120000", 1, "A run so long starts the count of restarts anew."),
    _key(
        PYTHON_KEY,
        BOOLEAN,
        "false",
        "Whether connectors may have wherry.transforms.Python, which runs code from their configuration.",
    ),
    _key("wherry.native.enabled", BOOLEAN, "true", "Whether workers use wherry-native where it is installed."),
    _key("wherry.rest.jaas.file", STRING, None, "JAAS file with the entry KafkaConnect; KAFKA_OPTS may name it, too."),
    _key("wherry.state.dir", STRING, None, "Folder for sockets and caches; by default one of the system's."),
    _at_least("wherry.kafka.start.timeout.ms", LONG, "60000", 0, "How long to wait for a broker at start."),
    _at_least("wherry.validate.timeout.ms", INT, "20000", 100, "How long a plugin may take to check a configuration."),
)
