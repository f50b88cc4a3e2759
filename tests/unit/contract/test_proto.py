"""Domain types over the wire and back; numbers of a newer peer."""

from __future__ import annotations

import pytest

from wherry.connector.v1 import common_pb2, plugin_pb2
from wherry.contract import from_proto, to_proto
from wherry.contract.batch import Constants, Mark, RowError
from wherry.contract.config import ConfigDef, ConfigKey, ConfigType
from wherry.contract.description import Capabilities, ClassDescription, Role, SinkClass, SourceClass
from wherry.contract.errors import ConnectorBugError, ErrorClass
from wherry.contract.limits import ROW_ERROR_MESSAGE_BYTES_MAX, Limits
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position


@pytest.mark.parametrize("offset", [None, "{}", '{"pos":1}'])
def test_a_position_keeps_absent_and_empty_offsets_apart(offset: str | None) -> None:
    position = Position('{"p":1}', offset)
    assert from_proto.position(to_proto.position(position)) == position


def test_a_mark_a_row_error_and_constants_come_back() -> None:
    mark = Mark(3, Position("{}", None))
    error = RowError(2, ErrorClass.TRANSIENT, "BUSY", "a.b", "Try again.", b"\x00")
    assert from_proto.mark(to_proto.mark(mark)) == mark
    assert from_proto.row_error(to_proto.row_error(error)) == error
    for constants in (Constants(), Constants("t", 0, 0, 0), Constants("t", 0, 0, 0, "o", 0)):
        assert from_proto.constants(to_proto.constants(constants)) == constants


def test_a_plan_comes_back() -> None:
    work = Work("0", b"\x01", {"a": "b"}, "group", ('{"p":1}',), 5, 6)
    plan = Plan((work,), (work, work), 500, (Position("{}", None),), (Position("{}", "{}"),), True)
    assert from_proto.plan(to_proto.plan(plan)) == plan


def test_a_description_comes_back() -> None:
    described = ClassDescription(
        class_name="a.B",
        role=Role.SINK,
        config=ConfigDef([ConfigKey("k", ConfigType.INT, "1")]),
        aliases=("B",),
        version="1",
        partition_schema_json="{}",
        offset_schema_json="{}",
        sink_class=SinkClass.TRANSACTIONAL,
        capabilities=Capabilities(typed=True, deletes=True),
        documentation="What it is.",
    )
    assert from_proto.class_description(to_proto.class_description(described)) == described


@pytest.mark.parametrize(
    ("domain", "proto", "prefix"),
    [
        (Role, common_pb2.Role, "ROLE_"),
        (SinkClass, plugin_pb2.SinkClass, "SINK_CLASS_"),
        (SourceClass, plugin_pb2.SourceClass, "SOURCE_CLASS_"),
        (ConfigType, plugin_pb2.ConfigType, "CONFIG_TYPE_"),
    ],
)
def test_enums_have_the_numbers_of_the_proto(domain: type, proto: object, prefix: str) -> None:
    numbers = {name.removeprefix(prefix): number for name, number in proto.items() if number}  # type: ignore[attr-defined]
    assert numbers == {member.name: member.value for member in domain}  # type: ignore[attr-defined]


def test_limits_of_zero_mean_the_defaults() -> None:
    assert from_proto.limits(common_pb2.Limits()) == Limits()
    small = Limits(1, 2, 3, 4, 5)
    assert from_proto.limits(to_proto.limits(small)) == small
    assert Limits().meet(small) == small


def test_a_class_without_a_role_is_refused() -> None:
    with pytest.raises(ConnectorBugError, match="without a name or a role"):
        from_proto.class_description(plugin_pb2.ClassDescription(class_name="x"))


def test_an_error_class_of_a_newer_peer_counts_as_a_bug() -> None:
    message = common_pb2.RowError.FromString(b"\x10\x63")
    assert from_proto.row_error(message).error_class is ErrorClass.BUG


def test_a_check_of_a_newer_peer_is_left_to_the_sidecar() -> None:
    assert from_proto.validator(plugin_pb2.Validator()) is None


def test_long_texts_of_row_errors_are_cut() -> None:
    message = to_proto.row_error(RowError(0, ErrorClass.BUG, message="é" * 2000)).message
    assert len(message.encode()) <= ROW_ERROR_MESSAGE_BYTES_MAX
