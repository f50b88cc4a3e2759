"""The unary calls and the quiet streams, over real gRPC: what an engine sees of an author's classes."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from sdk_connectors import Basket, Lines

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc
from wherry.contract.client import Finding, SidecarClient
from wherry.contract.description import Role, SinkClass, SourceClass
from wherry.contract.errors import ConfigError, ConnectorBugError, FencedError, TransientError
from wherry.contract.frame import Encoding
from wherry.contract.limits import Limits
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.sdk._events import Events, EventsHandler
from wherry.sdk._services import SDK_VERSION
from wherry.sdk.testing import configure, sidecar


def read_all(client: SidecarClient) -> None:
    # The test may have what it wants, and close the channel, before the stream has ended.
    with contextlib.suppress(TransientError):
        list(client.read(generation=1, work=Work("0"), split=True))


@pytest.fixture
def client() -> Iterator[SidecarClient]:
    with sidecar(Lines, Basket) as connected:
        yield connected


def test_hello_agrees_on_what_both_can_bear(client: SidecarClient) -> None:
    hello = client.hello("i-1", engine_version="9")
    assert (hello.plugin_name, hello.plugin_version, hello.revision) == ("test", "0", 1)
    assert hello.encodings == (Encoding.ARROW_IPC, Encoding.COLUMNS, Encoding.JSON_LINES)
    assert hello.limits == Limits()
    assert hello.sdk == f"wherry-python {SDK_VERSION}"
    assert client.healthy()


def test_an_engine_of_another_revision_is_refused(client: SidecarClient) -> None:
    stub = plugin_pb2_grpc.PluginServiceStub(client.channel)  # type: ignore[no-untyped-call]
    with pytest.raises(ConfigError, match="speaks the revisions 2 to 3"):
        client._call_once(stub.Hello, plugin_pb2.HelloRequest(revision_min=2, revision_max=3), 5.0)


def test_describe_tells_the_classes_whole(client: SidecarClient) -> None:
    lines, basket = client.describe()
    assert (lines.class_name, lines.aliases, lines.role) == ("test.Lines", ("Lines",), Role.SOURCE)
    assert (lines.source_class, lines.sink_class) == (SourceClass.REPLAYABLE, None)
    able = lines.capabilities
    assert (able.splits, able.watch, able.parkable, able.alter_offsets) == (True, True, True, True)
    assert [key.name for key in lines.config.keys] == ["topic", "count", "password", "script"]
    assert lines.documentation.startswith("Yields what a test's script says")
    assert (basket.sink_class, basket.capabilities.alter_offsets) == (SinkClass.TWO_PHASE, False)


def test_validation_finds_wrong_values_before_it_asks_the_class(client: SidecarClient) -> None:
    found = client.validate_config("Lines", {"count": "dog"})
    assert found.errors == {"count": ("Invalid value dog for configuration count: Not a number of type INT",)}
    assert client.validate_config("Lines", {"count": "3"}).errors == {"count": ("Must be even.",)}
    assert client.validate_config("Lines", {"count": "4"}).findings == ()


def test_only_a_connecting_validation_contacts_and_secrets_are_hidden(client: SidecarClient) -> None:
    secrets = {"password": "hush"}
    assert client.validate_config("Lines", {}, secrets).findings == ()
    (finding,) = client.validate_config("Lines", {}, secrets, connect=True).findings
    assert finding == Finding("password", ("The server refuses [hidden].",))


def test_a_sink_tells_its_class_under_a_configuration(client: SidecarClient) -> None:
    assert client.validate_config("test.Basket", {}).sink_class is SinkClass.TWO_PHASE


def test_values_that_clash_are_told_though_a_sink_can_not_tell_its_class_under_them(client: SidecarClient) -> None:
    found = client.validate_config("test.Basket", {"script": "clash"})
    assert (found.errors, found.sink_class) == ({"script": ("It clashes.",)}, None)


def test_an_unknown_class_is_told_with_the_known_ones(client: SidecarClient) -> None:
    with pytest.raises(ConfigError, match=r"no class Other; it has test\.Lines, test\.Basket") as refused:
        client.validate_config("Other", {})
    assert refused.value.key == "connector.class"


def test_a_wrong_configuration_is_not_taken(client: SidecarClient) -> None:
    with pytest.raises(ConfigError, match="Not a number of type INT") as refused:
        client.configure("c", "Lines", 1, {"count": "dog"})
    assert refused.value.key == "count"


def test_a_lower_generation_is_fenced_and_the_same_may_come_again(client: SidecarClient) -> None:
    configure(client, Lines, {}, generation=3)
    configure(client, Lines, {}, generation=3)
    with pytest.raises(FencedError, match="bound to generation 3; 2 is older"):
        configure(client, Lines, {}, generation=2)
    configure(client, Lines, {}, generation=4)


@pytest.mark.parametrize("call", ["plan", "probe", "ensure_target"])
def test_nothing_works_before_configure(client: SidecarClient, call: str) -> None:
    calls = {"plan": client.plan, "probe": client.probe, "ensure_target": lambda: client.ensure_target("t")}
    with pytest.raises(ConnectorBugError, match="Configure comes first") as refused:
        calls[call]()
    assert refused.value.reason == "NOT_CONFIGURED"


def test_a_source_is_no_sink(client: SidecarClient) -> None:
    configure(client, Lines, {})
    with pytest.raises(ConnectorBugError, match=r"test\.Lines is a source, not a sink"):
        client.ensure_target("t")


def test_plans_have_tasks_or_splits(client: SidecarClient) -> None:
    configure(client, Lines, {})
    assert client.plan(tasks_max=5).tasks == (
        Work("0", b'{"n":0}', {"n": "0"}),
        Work("1", b'{"n":1}', {"n": "1"}),
    )
    configure(client, Lines, {"script": "splits"}, generation=2)
    plan = client.plan(splits_active=["1"])
    assert [work.id for work in plan.splits] == ["0", "2"]
    assert plan.complete


def test_probe_and_delete_reach_the_class(client: SidecarClient) -> None:
    configure(client, Lines, {})
    assert client.probe() == "It is there."
    client.on_delete("c")
    assert Lines.calls == ["on_delete"]


def test_offsets_are_altered_or_refused(client: SidecarClient) -> None:
    good = [Position('{"p":0}', '{"n":1}'), Position('{"p":1}', None)]
    assert client.alter_offsets(Role.SOURCE, "c", "Lines", {}, good, validate_only=True)
    assert Lines.calls == [("alter", [({"p": 0}, {"n": 1}), ({"p": 1}, None)], True)]
    with pytest.raises(ConfigError, match="Offsets start at 0"):
        client.alter_offsets(Role.SOURCE, "c", "Lines", {}, [Position('{"p":0}', '{"n":-1}')])
    assert not client.alter_offsets(Role.SINK, "c", "test.Basket", {}, good)


def test_a_target_is_ensured_and_tokens_are_committed(client: SidecarClient) -> None:
    configure(client, Basket, {})
    schema = pa.schema([("value", pa.int32())])
    target = client.ensure_target("t", schema, dry_run=True)
    assert (target.target, target.actions, target.schema) == ('"t"', ("Create it.",), schema)
    assert client.ensure_target("t").schema is None
    assert client.commit(1, [b"token"])
    assert ("commit", [b"token"]) in Basket.calls
    with pytest.raises(FencedError):
        client.commit(2, [b"token"])


def test_events_carry_logs_metrics_and_failures() -> None:
    with sidecar(Lines, config={"script": "talk"}) as client:

        def talk(source: Lines, *_: object) -> Iterator[None]:
            source.log.info("Read a file", path="/x")
            source.metric("rows.skipped", 2, counter=True, table="t")
            source.context.fail(TransientError("Away."))
            return iter(())

        Lines.scripts["talk"] = talk
        events = client.events()
        threading.Timer(0.2, lambda: read_all(client)).start()
        log, metric, failed = (next(events) for _ in range(3))
        assert (log.log.message, dict(log.log.fields), log.log.logger) == ("Read a file", {"path": "/x"}, "test.Lines")
        assert (metric.metric.name, metric.metric.value, metric.metric.counter) == ("rows.skipped", 2, True)
        assert dict(metric.metric.attributes) == {"table": "t"}
        assert (failed.failed.error_class, failed.failed.message) == (1, "Away.")


def test_watch_tells_that_the_plan_has_changed() -> None:
    with sidecar(Lines, config={"script": "tell"}) as client:

        def tell(source: Lines, *_: object) -> Iterator[None]:
            source.context.plan_changed("a new file")
            return iter(())

        Lines.scripts["tell"] = tell
        threading.Timer(0.3, lambda: read_all(client)).start()
        assert next(client.watch()) == "a new file"


def test_a_second_subscriber_takes_the_place_of_the_first() -> None:
    events = Events()
    first, second = events.subscribe(lambda: True), events.subscribe(lambda: True)
    events.put()
    next(first)
    events.put()
    next(second)
    assert list(first) == []


def test_a_slow_subscriber_is_told_how_much_it_missed() -> None:
    events = Events()
    for _ in range(5000):
        events.put()
    first = next(events.subscribe(lambda: True))
    assert first.log.message == "904 events were dropped."


def test_logs_go_to_stderr_while_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("library")
    handler = EventsHandler(Events())
    logger.addHandler(handler)
    logger.warning("Careful: %s", 5)
    logger.removeHandler(handler)
    assert capsys.readouterr().err == "WARNING library Careful: 5\n"


def test_a_sidecar_that_is_not_there_is_told_within_the_deadline() -> None:
    with SidecarClient("unix:///nowhere/at/all.sock") as client:
        assert not client.healthy(deadline_s=0.5)
        with pytest.raises(TransientError, match=r"Probe of the sidecar at unix:///nowhere/at/all\.sock: it can't be"):
            client.probe(deadline_s=0.5)
