"""A broker that allows a worker less than it needs: what is missing is told, and nothing is half-written."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.support.distributed import Distributed
from tests.support.stores import Cluster
from tests.support.waiting import eventually

from wherry.contract.errors import AuthError, ConfigError
from wherry.contract.position import Position
from wherry.coordinator.api import State, TargetState
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.ports import LOOPBACK, free_ports
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.store import StoredStatus
from wherry.coordinator.store.internal_topics import InternalTopic, ensure

pytestmark = pytest.mark.integration
TIMEOUT_S = 120.0
SOMEBODY = "User:somebody"
USER, PASSWORD = "worker", "worker-secret"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Guarded:
    """A broker that minds what is granted to whom: `open` lets in its own, `bootstrap` users with a password."""

    open: str
    bootstrap: str

    @property
    def client(self) -> dict[str, str]:
        """How our user connects."""
        login = {"sasl.username": USER, "sasl.password": PASSWORD}
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            **login,
        }

    def worker(self, password: str = PASSWORD) -> dict[str, str]:
        """The same, in a worker file."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} username="{USER}" password="{password}";',
            "wherry.standby": "cold",
        }

    def keep_for_somebody(self, kind: str, name: str, operation: str) -> None:
        """Grant something to somebody else alone, so that it is closed to us."""
        from confluent_kafka import admin

        acl = admin.AclBinding(
            getattr(admin.ResourceType, kind),
            name,
            admin.ResourcePatternType.LITERAL,
            SOMEBODY,
            "*",
            getattr(admin.AclOperation, operation),
            admin.AclPermissionType.ALLOW,
        )
        client = admin.AdminClient({"bootstrap.servers": self.open, "log_level": 0})
        for future in client.create_acls([acl]).values():
            future.result(TIMEOUT_S)
        # The broker minds it a little after it has said so.
        place = (acl.restype, name, acl.resource_pattern_type)
        wanted = admin.AclBindingFilter(*place, SOMEBODY, "*", acl.operation, acl.permission_type)
        assert eventually(lambda: client.describe_acls(wanted).result(TIMEOUT_S) != [])


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    ports = free_ports(3, LOOPBACK)
    own, users, controller = (f"{LOOPBACK}:{port}" for port in ports)
    listeners = f"PLAINTEXT://{own},USERS://{users}"
    options = {
        "listeners": f"{listeners},CONTROLLER://{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{_PLAIN} user_{USER}="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Everybody may do everything but what is granted to somebody else; the broker itself comes without a name.
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    with EmbeddedKafka(port=ports[0], controller_port=ports[2], options=options):
        yield Guarded(own, users)


@pytest.fixture
def cluster(guarded: Guarded) -> Iterator[Cluster]:
    made = Cluster(guarded.bootstrap, guarded.client)
    yield made
    made.close()


def test_a_topic_that_may_not_be_created_is_told_with_what_to_do(guarded: Guarded) -> None:
    name = f"closed-{uuid.uuid4().hex[:8]}"
    guarded.keep_for_somebody("TOPIC", name, "CREATE")
    guarded.keep_for_somebody("BROKER", "kafka-cluster", "CREATE")
    admin = KafkaAdmin(guarded.client)
    with pytest.raises(ConfigError, match=rf"Create the topic {name} \(status.storage.topic\) yourself"):
        ensure(admin, InternalTopic("status", name, 5, 1, {"cleanup.policy": "compact"}))
    assert name not in admin.topics()


@pytest.mark.parametrize("transactions", [True, False], ids=["with transactions", "without"])
def test_topics_that_may_not_be_written_stay_as_they_are(
    cluster: Cluster, guarded: Guarded, transactions: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if not transactions:
        guarded.keep_for_somebody("TRANSACTIONAL_ID", f"connect-cluster-{cluster.group}", "WRITE")
    writer = cluster.writer()
    writer.claim()
    assert ("is written without transactions; grant Write" in caplog.text) is not transactions
    ours = cluster.stores(writer)
    ours.configs.put_connector("c", {"a": "1"})
    for topic in cluster.topics:
        guarded.keep_for_somebody("TOPIC", topic.name, "WRITE")
    refused = (
        lambda: ours.configs.put_connector("c", {"a": "2"}, TargetState.PAUSED),
        lambda: ours.configs.put_task_configs("c", [{"a": "1"}, {"a": "2"}]),
        lambda: ours.offsets.write("c", [Position('{"f":"x"}', '{"p":1}')]),
        lambda: ours.statuses.put(StoredStatus("c", None, State.RUNNING, "w:1", 1)),
    )
    for write in refused:
        with pytest.raises(AuthError, match=rf"could not write to {cluster.group}-.*AUTHORIZATION_FAILED"):
            write()
    # What we may not write we may not even see any more.
    cluster.config = {"bootstrap.servers": guarded.open}
    cluster.admin = KafkaAdmin(cluster.config)
    theirs = cluster.stores()
    assert {name: (dict(c.config), c.tasks) for name, c in theirs.configs.snapshot().connectors.items()} == {
        "c": ({"a": "1"}, ())
    }
    assert (theirs.offsets.load("c"), theirs.statuses.get("c")) == ([], None)


def ended(worker: Distributed, told: str) -> None:
    assert eventually(lambda: told in worker.log_tail(), TIMEOUT_S), worker.log_tail()
    assert eventually(lambda: worker.ended, TIMEOUT_S)
    assert "Traceback" not in worker.log_tail()
    assert PASSWORD not in worker.log_tail()


def test_a_group_that_may_not_be_joined_ends_the_worker_with_a_sentence(guarded: Guarded) -> None:
    group = f"closed-{uuid.uuid4().hex[:8]}"
    guarded.keep_for_somebody("GROUP", group, "READ")
    with Distributed(bootstrap=guarded.bootstrap, group=group, settings=guarded.worker()) as worker:
        ended(worker, f"The worker may not join the group {group} (group.id): grant it Read on that group.")


def test_a_config_topic_that_may_not_be_read_ends_the_worker_with_a_sentence(guarded: Guarded) -> None:
    group = f"closed-{uuid.uuid4().hex[:8]}"
    guarded.keep_for_somebody("TOPIC", f"{group}-config", "WRITE")
    with Distributed(bootstrap=guarded.bootstrap, group=group, settings=guarded.worker()) as worker:
        ended(worker, f"{group}-config")


def test_a_wrong_password_ends_the_worker_with_a_sentence(guarded: Guarded) -> None:
    settings = guarded.worker(password="wrong")
    with Distributed(bootstrap=guarded.bootstrap, group="any", settings=settings) as worker:
        ended(worker, "Correct the security settings of the worker file.")
