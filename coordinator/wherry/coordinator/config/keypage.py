"""The page that tells of every key what becomes of it: made from the tables, written by `python -m` of this module.

Worker and connector keys are honoured unless `EXCEPTIONS` says otherwise; those of clients have a table of their own.
A test holds the page equal to what this makes, and the tables complete against Kafka Connect's own key lists.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from wherry.contract.config import ConfigKey
from wherry.contract.kafka_client_keys import CLIENT_KEYS, FORMER_KEYS, ClientKey, Fate
from wherry.contract.transforming import TIMEOUT_KEY
from wherry.coordinator.config import delivery, errorkeys
from wherry.coordinator.config.connectorkeys import COMMON_KEYS as CONNECTOR_KEYS
from wherry.coordinator.config.connectorkeys import SINK_KEYS, SOURCE_KEYS
from wherry.coordinator.config.providers import TTL_PARAMETER
from wherry.coordinator.config.workerkeys import COMMON_KEYS, DISTRIBUTED_KEYS, OWN_KEYS, STANDALONE_KEYS

PAGE: Final = Path(__file__).resolve().parents[3] / "CONFIGURATION.md"
_NO_JMX: Final = "there is no JVM of ours whose metrics these are; figures are served as Prometheus text"
_NO_REBALANCE: Final = "connectors and tasks are handed out by the leader, one by one, without a rebalance of the group"
_LATER: Final = "a key of releases after 4.3.1, accepted so that their files can be used"
_HMAC: Final = "HmacSHA256, Kafka Connect's default, at any setting"
_STATIC: Final = "one thread of the coordinator plans and commits; nothing is flushed all at once"

EXCEPTIONS: Final[Mapping[str, tuple[Fate, str]]] = {
    "offset.flush.timeout.ms": (Fate.MEANINGLESS, _STATIC),
    "plugin.discovery": (Fate.MEANINGLESS, "plugins carry a manifest each and are found by it, at any setting"),
    "metrics.sample.window.ms": (Fate.MEANINGLESS, _NO_JMX),
    "metrics.num.samples": (Fate.MEANINGLESS, _NO_JMX),
    "metrics.recording.level": (Fate.MEANINGLESS, _NO_JMX),
    "metric.reporters": (Fate.MEANINGLESS, _NO_JMX),
    "auto.include.jmx.reporter": (Fate.MEANINGLESS, _NO_JMX),
    "metadata.cluster.check.enable": (Fate.MEANINGLESS, _LATER),
    "bootstrap.resolve.timeout.ms": (Fate.MEANINGLESS, _LATER),
    "client.dns.lookup": (Fate.OTHERWISE, "for the worker's own admin client; others by their prefix"),
    "request.timeout.ms": (Fate.OTHERWISE, "as socket.timeout.ms of the worker's own admin client"),
    "key.converter.plugin.version": (Fate.OTHERWISE, "there is one version of each converter, Wherry's own"),
    "value.converter.plugin.version": (Fate.OTHERWISE, "there is one version of each converter, Wherry's own"),
    "header.converter.plugin.version": (Fate.OTHERWISE, "there is one version of each converter, Wherry's own"),
    "task.shutdown.graceful.timeout.ms": (
        Fate.OTHERWISE,
        "a whole worker ends within it or, if that is more, 5000; each lease drains so long, at most 1500 less",
    ),
    "heartbeat.interval.ms": (
        Fate.OTHERWISE,
        "coordinators tell of themselves every second, leases every wherry.lease.report.interval.ms",
    ),
    "session.timeout.ms": (
        Fate.OTHERWISE,
        "another coordinator leads after wherry.leader.session.timeout.ms; a lease is lost after "
        "wherry.lease.timeout.ms",
    ),
    "socket.connection.setup.timeout.ms": (Fate.OTHERWISE, "of the worker's own admin client; at least 1000"),
    "socket.connection.setup.timeout.max.ms": (Fate.MEANINGLESS, "the time for connecting does not grow here"),
    "connect.protocol": (Fate.MEANINGLESS, _NO_REBALANCE),
    "scheduled.rebalance.max.delay.ms": (Fate.MEANINGLESS, _NO_REBALANCE),
    "rebalance.timeout.ms": (Fate.MEANINGLESS, _NO_REBALANCE),
    "worker.sync.timeout.ms": (Fate.OTHERWISE, "the topics are read to their end, within a bound of Wherry's own"),
    "inter.worker.key.generation.algorithm": (Fate.OTHERWISE, _HMAC),
    "inter.worker.key.size": (Fate.OTHERWISE, _HMAC),
    "inter.worker.signature.algorithm": (Fate.OTHERWISE, _HMAC),
    "inter.worker.verification.algorithms": (Fate.OTHERWISE, _HMAC),
    "worker.unsync.backoff.ms": (Fate.MEANINGLESS, _NO_REBALANCE),
    "errors.log.include.messages": (
        Fate.OTHERWISE,
        "where the record was, never what it held, of sources neither",
    ),
}

_PREFIXES: Final = (
    ("producer.X, consumer.X, admin.X", "settings of the clients of all connectors; see the last table"),
    ("key.converter.X, value.converter.X, header.converter.X", "settings of the worker's converters"),
    ("config.providers.N.class", "FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider"),
    ("config.providers.N.param.allowed.paths", "folders and files that may be read; links are followed first"),
    ("config.providers.N.param.allowlist.pattern", "variables that may be read, as a whole"),
    (
        f"config.providers.N.param.{TTL_PARAMETER}",
        "Wherry's own: after so long secrets are looked at again, and a connector with config.action.reload=restart is "
        "restarted when one has changed",
    ),
    ("config.storage.X, offset.storage.X, status.storage.X", "settings of the internal topics when they are made"),
    ("listeners.https.X, admin.listeners.https.X, ssl.X", "TLS of the REST listeners"),
    ("wherry.spark.X", "passed to Spark as spark.X"),
)
_CONNECTOR_PREFIXES: Final = (
    ("producer.override.X, consumer.override.X, admin.override.X", "settings of this connector's clients, as allowed"),
    (
        "key.converter.X, value.converter.X, header.converter.X",
        "settings of a converter the connector names itself",
    ),
    ("transforms.A.X, predicates.P.X", "settings of a transformation or predicate"),
    (f"transforms.A.{TIMEOUT_KEY}", "how long a plugin's transformation may take for a batch, in ms; 60000 when unset"),
    ("topic.creation.G.X", "include, exclude, partitions, replication.factor; others are settings of the topic"),
)
_HEAD: Final = """# Configuration

Every key of Kafka Connect 4.3.1's worker, connectors and clients, and what becomes of it. Made from the tables in the
code: `python -m wherry.coordinator.config.keypage` writes it.

| word | means |
|---|---|
| honoured | does what it does in Kafka Connect |
| honoured otherwise | does the same by other means, or within bounds, as told |
| meaningless here | there is nothing it could set; it is accepted, and named in the log where it is a client's |
| not available | what it asks for is not there; it is accepted, and a warning names it |
| refused | going on without it would be wrong; a sentence says what to do instead |

Settings of a worker come from its file and from `CONNECT_…` variables, which win: `CONNECT_GROUP_ID` is `group.id`,
`__` a dash, `___` an underscore. Keys nobody knows are named at the start, with the key that was probably meant.

Variables of the process itself: `WHERRY_CACHE` names the folder for what is costly to make (environments and
descriptions of plugins, jars; by default `wherry` in the user's cache), `WHERRY_NATIVE=off` leaves the compiled helper
aside, and with `WHERRY_TRACE=1` a command that fails prints its stack trace, too.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    parts.append(_section("Worker: standalone and distributed", _rows(COMMON_KEYS)))
    parts.append(_section("Worker: standalone", _rows(STANDALONE_KEYS)))
    parts.append(_section("Worker: distributed", _rows(DISTRIBUTED_KEYS)))
    parts.append(_section("Worker: Wherry's own", _rows(OWN_KEYS)))
    parts.append(_section("Worker: by prefix", [(f"`{name}`", "", "", note) for name, note in _PREFIXES]))
    parts.append(_section("Connectors", _rows(CONNECTOR_KEYS)))
    parts.append(_section("Connectors: sources", _rows(SOURCE_KEYS)))
    parts.append(_section("Connectors: sinks", _rows(SINK_KEYS)))
    own = (delivery.KEY, *errorkeys.KEYS, *errorkeys.SOURCE_KEYS)
    parts.append(_section("Connectors: Wherry's own", _rows(own)))
    parts.append(_section("Connectors: by prefix", [(f"`{name}`", "", "", note) for name, note in _CONNECTOR_PREFIXES]))
    parts.append(_clients())
    return "\n".join(parts)


def fate_of(key: ConfigKey) -> tuple[Fate, str]:
    """What becomes of a worker's or connector's key."""
    return EXCEPTIONS.get(key.name, (Fate.HONOURED, key.documentation))


def _rows(keys: Iterable[ConfigKey]) -> Iterator[tuple[str, ...]]:
    for key in keys:
        fate, note = fate_of(key)
        default = "required" if key.required else "" if key.default_value is None else f"`{key.default_value}`"
        yield f"`{key.name}`", default if default != "``" else "", str(fate.value), note


def _section(title: str, rows: Iterable[Sequence[str]]) -> str:
    lines = [f"## {title}", "", "| key | default | what becomes of it | how, or why not |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _clients() -> str:
    lines = [
        "## Clients",
        "",
        "Java's keys, behind `producer.`, `consumer.`, `admin.` of the worker and the overrides of a connector. Keys",
        "of librdkafka may be given too. Lines without clients are those of all three.",
        "",
        "| key | clients | what becomes of it | how, or why not |",
        "|---|---|---|---|",
    ]
    for name in sorted({name for keys in CLIENT_KEYS.values() for name in keys}):
        by_fate: dict[ClientKey, list[str]] = {}
        for kind, keys in CLIENT_KEYS.items():
            if name in keys:
                by_fate.setdefault(keys[name], []).append(kind)
        for key, kinds in by_fate.items():
            renamed = f"as `{key.native}`" if key.native not in ("", name) else ""
            note = "; ".join(part for part in (renamed, key.note) if part)
            shown = "" if len(kinds) == len(CLIENT_KEYS) else ", ".join(kinds)
            lines.append(f"| `{name}` | {shown} | {key.fate.value} | {_cell(note)} |")
    lines += [f"| `{name}` (of older clients) | | meaningless here | {why} |" for name, why in FORMER_KEYS.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE} is written.\n")
