"""The page of all keys is what the tables say, and the tables hold every key of Kafka Connect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wherry.contract
import wherry.coordinator
from wherry.coordinator.config import keypage, workerkeys
from wherry.coordinator.config.connectorkeys import COMMON_KEYS as CONNECTOR_KEYS
from wherry.coordinator.config.connectorkeys import SINK_KEYS, SOURCE_KEYS
from wherry.coordinator.config.keypage import EXCEPTIONS, PAGE, page
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.config.workerkeys import COMMON_KEYS, DISTRIBUTED_KEYS, OWN_KEYS, STANDALONE_KEYS

JAVA_KEYS = json.loads((Path(__file__).parents[3] / "cases" / "java_keys.json").read_text())
GOOD = {"bootstrap.servers": "a:1", "key.converter": "Json", "value.converter": "Json"}
STANDALONE = {**GOOD, "offset.storage.file.filename": "/tmp/o"}


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m wherry.coordinator.config.keypage"


@pytest.mark.parametrize("mode", ["standalone", "distributed"])
def test_no_key_of_kafka_connects_worker_is_unknown(mode: str) -> None:
    values = {key: "x" for key in JAVA_KEYS[mode] if key not in STANDALONE}
    parsed_by_others = {"ssl.client.auth": "none", "client.dns.lookup": "use_all_dns_ips"}
    definitions = {key.name for key in (*COMMON_KEYS, *DISTRIBUTED_KEYS, *STANDALONE_KEYS)}
    strangers = {key: value for key, value in values.items() if key not in definitions}
    assert WorkerConfig.of({**STANDALONE, **strangers, **parsed_by_others}).unknown == ()


@pytest.mark.parametrize("mode", ["standalone", "distributed"])
def test_types_and_defaults_are_kafka_connects(mode: str) -> None:
    """The defaults of lists and classes are spelled in different ways; the reference cases are about those."""
    own = {key.name: key for key in (*COMMON_KEYS, *DISTRIBUTED_KEYS, *STANDALONE_KEYS)}
    unlike = {
        name: (java["type"], java["default"], key.type.name, key.default_value)
        for name, java in JAVA_KEYS[mode].items()
        if (key := own.get(name)) is not None
        and ((java["default"] or None) != (key.default_value or None) or java.get("required", False) != key.required)
    }
    assert not {name: each for name, each in unlike.items() if each[0] not in ("LIST", "CLASS")}


def test_every_exception_is_about_a_key_that_there_is() -> None:
    tables = (COMMON_KEYS, DISTRIBUTED_KEYS, STANDALONE_KEYS, OWN_KEYS, CONNECTOR_KEYS, SOURCE_KEYS, SINK_KEYS)
    assert set(EXCEPTIONS) <= {key.name for table in tables for key in table}


def test_every_key_of_our_own_is_read_somewhere() -> None:
    rooms = [Path(wherry.coordinator.__path__[0]), Path(wherry.contract.__path__[0])]
    tables = {Path(workerkeys.__file__), Path(keypage.__file__)}
    code = "".join(path.read_text() for room in rooms for path in room.rglob("*.py") if path not in tables)
    constants = {value: name for name, value in vars(workerkeys).items() if isinstance(value, str)}
    assert [k.name for k in OWN_KEYS if f'"{k.name}"' not in code and constants.get(k.name, "-") not in code] == []
