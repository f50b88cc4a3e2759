"""The golden byte vectors: what this implementation makes of them, and that it still writes the same."""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wherry.connector.v1 import frame_pb2, source_pb2
from wherry.contract import wire
from wherry.contract.errors import ConnectorBugError
from wherry.contract.frame import FrameReader

VECTORS = Path(__file__).parents[3] / "protos" / "vectors"
CASES = json.loads((VECTORS / "frames.json").read_text(encoding="utf-8"))
GOOD = [case for case in CASES if "batches" in case]
BAD = [case for case in CASES if "refused" in case]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_vectors", VECTORS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def frames_of(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(text) for text in case["frames"]]


def name_of(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", GOOD, ids=name_of)
def test_a_vector_reads_as_it_says(case: dict[str, Any], generator: ModuleType) -> None:
    read = json.loads(json.dumps(generator.read(frames_of(case))))
    assert read == case["batches"]


@pytest.mark.parametrize("case", GOOD, ids=name_of)
def test_a_vector_reads_the_same_when_its_body_is_spliced_out_of_a_stream_message(
    case: dict[str, Any], generator: ModuleType
) -> None:
    reader = FrameReader()
    batches = []
    for data in frames_of(case):
        message = source_pb2.ReadResponse(frame=frame_pb2.Frame.FromString(data)).SerializeToString()
        item = wire.deserializer(source_pb2.ReadResponse.FromString)(message)
        assert isinstance(item, wire.WireFrame)
        batches.append(reader.feed(item))
    read = [generator.plain(batch) for batch in batches if batch is not None]
    assert json.loads(json.dumps(read)) == case["batches"]


@pytest.mark.parametrize("case", BAD, ids=name_of)
def test_a_damaged_vector_is_refused_with_a_sentence(case: dict[str, Any], generator: ModuleType) -> None:
    with pytest.raises(ConnectorBugError, match=case["refused"]):
        generator.read(frames_of(case))


def test_the_body_that_a_walker_finds_is_the_one_behind_the_lookalikes() -> None:
    case = next(case for case in GOOD if "look like" in case["name"])
    frame = frame_pb2.Frame.FromString(frames_of(case)[1])
    message = source_pb2.ReadResponse(frame=frame).SerializeToString()
    before_body = message.index(b"\xc2\x3e")
    spliced = wire.decode(message)
    assert spliced is not None
    assert spliced.body.to_pybytes() == frame.body
    assert before_body < len(message) - len(frame.body) - 4, "the vector has no lookalike before its body"


def test_the_vectors_are_those_that_their_generator_writes(generator: ModuleType) -> None:
    """Arrow may lay out its own messages anew in a later version; the frames around them stay."""
    fresh = {case["name"]: case for case in json.loads(json.dumps(generator.vectors()))}
    assert fresh.keys() == {case["name"] for case in CASES}
    for case in CASES:
        assert fresh[case["name"]].get("batches") == case.get("batches")
        if "arrow" not in case["name"] and ("columns" in case["name"] or "json" in case["name"]):
            assert fresh[case["name"]]["frames"] == case["frames"]
