"""What would become of a cluster's connectors: verdicts from what the topics hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wherry.contract.connect_topics import offset_record
from wherry.contract.position import Position
from wherry.coordinator.api import ApiError, ConnectorType, State, TargetState
from wherry.coordinator.migrate import Cluster, Plugin, Verdict, examine
from wherry.coordinator.store import StoredStatus
from wherry.coordinator.store.configlog import connector_records, task_records
from wherry.coordinator.store.statuslog import status_record

FILES = Plugin("filestream", "1.0", ConnectorType.SOURCE)


def cluster() -> Cluster:
    made = Cluster()
    records = [
        *connector_records("b", {"connector.class": "Known"}, TargetState.PAUSED),
        *task_records("b", [{}, {}]),
        *connector_records("a", {"connector.class": "Unknown"}),
        *connector_records("c", {"connector.class": "Known", "bad": "1"}),
    ]
    for key, value in records:
        made.configs.apply(key.encode(), value)
    position = offset_record("b", Position('{"f":1}', '{"o":1}'))
    made.offsets.apply(position.key, position.value)
    key, value = status_record(StoredStatus("b", None, State.PAUSED, "w", 1))
    made.statuses.apply(key.encode(), value)
    return made


def find(config: Mapping[str, str]) -> Plugin | None:
    return FILES if config["connector.class"] == "Known" else None


def errors_of(config: Mapping[str, str]) -> Sequence[str]:
    return ["bad is wrong"] if "bad" in config else []


def test_every_connector_gets_a_verdict_by_name():
    verdicts = examine(cluster(), find, errors_of)
    assert verdicts == [
        Verdict(
            "a", "Unknown", None, "STARTED", 0, 0, None, ("No plugin has a class Unknown: put one on plugin.path.",)
        ),
        Verdict("b", "Known", FILES, "PAUSED", 2, 1, State.PAUSED),
        Verdict("c", "Known", FILES, "STARTED", 0, 0, None, ("bad is wrong",)),
    ]
    assert [verdict.runs for verdict in verdicts] == [False, True, False]


def test_a_check_that_refuses_the_whole_configuration_is_a_problem_of_it():
    def refuse(config: Mapping[str, str]) -> Sequence[str]:
        raise ApiError("not at all")

    assert [verdict.problems for verdict in examine(cluster(), find, refuse)][1:] == [("not at all",)] * 2


def test_a_cluster_without_connectors_has_no_verdicts():
    assert examine(Cluster(), find, errors_of) == []
