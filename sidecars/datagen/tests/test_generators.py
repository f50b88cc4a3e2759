"""The same seed gives the same rows, wherever one begins; and it is quick."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from wherry.contract.errors import ConfigError
from wherry_datagen.generators import BLOCK_ROWS, block
from wherry_datagen.schemas import NAMED, described, named


@pytest.mark.parametrize("name", NAMED)
def test_a_block_is_the_same_each_time_and_differs_between_tasks_and_blocks(name: str) -> None:
    first = block(named(name), 7, 0, 3)
    assert first.equals(block(named(name), 7, 0, 3))
    assert len(first) == BLOCK_ROWS
    assert not first.equals(block(named(name), 7, 0, 4))
    assert not first.equals(block(named(name), 8, 0, 3)) or name == "never"


def test_a_sequence_goes_on_from_block_to_block() -> None:
    ids = [block(named("readings"), 0, 0, number).field("id") for number in range(2)]
    assert ids[0][-1].as_py() + 1 == ids[1][0].as_py()


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no schema of that name; use orders"):
        named("nope")


def test_the_plain_form_makes_what_it_says() -> None:
    record = described(
        '{"fields":{"id":{"type":"long","sequence":true,"start":5,"step":2},"city":{"options":["Bern","Fès"]},'
        '"n":{"type":"int","min":1,"max":3},"maybe":{"type":"double","nulls":0.5},"in":{"fields":{"ok":"boolean"}}}}'
    )
    rows = block(record, 0, 0, 0)
    assert rows.field("id")[:2].to_pylist() == [5, 7]
    assert set(rows.field("city").to_pylist()) == {"Bern", "Fès"}
    assert pc.min_max(rows.field("n")).as_py() == {"min": 1, "max": 3}
    assert 0.4 < rows.field("maybe").null_count / BLOCK_ROWS < 0.6
    assert rows.type.field("in").type.field("ok").type == pa.bool_()


def test_an_avro_schema_makes_what_it_says() -> None:
    record = described(
        '{"type":"record","name":"r","fields":['
        '{"name":"id","type":{"type":"long","arg.properties":{"iteration":{"start":1,"step":10}}}},'
        '{"name":"user","type":{"type":"string","arg.properties":{"regex":"User_[1-9]{0,1}"}}},'
        '{"name":"color","type":{"type":"enum","name":"c","symbols":["RED","BLUE"]}},'
        '{"name":"tags","type":{"type":"array","items":"string"}},'
        '{"name":"note","type":["null","string"]}]}'
    )
    rows = block(record, 0, 0, 0)
    assert rows.field("id")[:2].to_pylist() == [1, 11]
    assert set(rows.field("color").to_pylist()) == {"RED", "BLUE"}
    assert all(name.startswith("User_") for name in rows.field("user").to_pylist())
    assert pa.types.is_list(rows.field("tags").type)
    assert rows.field("note").null_count > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "expected a JSON object"),
        ("{}", "expected an Avro record"),
        ('{"fields":{"a":{"type":"nope"}}}', "field a: unknown type nope"),
        ('{"fields":{"a":{"options":[]}}}', "options must be a list"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":["int","string"]}]}', "a union may have one type"),
    ],
)
def test_a_description_that_can_not_be_made_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        described(text)
