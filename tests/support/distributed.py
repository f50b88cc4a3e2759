"""`wherry distributed` as a user starts it, and the settings that a Kafka Connect cluster on the same topics has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.standalone import Standalone

STRING = "org.apache.kafka.connect.storage.StringConverter"


def cluster_settings(group: str) -> dict[str, str]:
    """Settings of a worker of a cluster, for both systems: its group, its topics, small as a test's broker is."""
    return {
        "group.id": group,
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.flush.interval.ms": "1000",
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "3",
        "status.storage.partitions": "2",
    }


class Distributed(Standalone):
    """One coordinator of a cluster.

    Args:
        bootstrap: Kafka's address.
        group: Its group.id.
        settings: Worker settings that overrule ours.
        directory: Folder for its files, which stays; None makes one that goes with it.
    """

    command = "distributed"

    def __init__(
        self,
        *,
        bootstrap: str,
        group: str,
        settings: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.group = group
        super().__init__(bootstrap=bootstrap, settings=settings, directory=directory)

    def of_mode(self) -> dict[str, str]:
        """Return the settings that its mode demands."""
        return cluster_settings(self.group)
