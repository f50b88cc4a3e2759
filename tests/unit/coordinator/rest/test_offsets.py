"""`/connectors/{c}/offsets`."""

from __future__ import annotations

import pytest

from wherry.contract.position import Position


def test_positions_are_shown_as_maps(ask, herder):
    herder.positions = [Position('{"filename":"é"}', '{"position":6}')]
    assert ask("GET", "/connectors/c/offsets").json == {
        "offsets": [{"partition": {"filename": "é"}, "offset": {"position": 6}}]
    }


def test_altering_keeps_the_order_of_keys(ask, herder):
    body = b'{"offsets":[{"partition":{"b":1,"a":"x"},"offset":{"n":1.5}},{"partition":{"c":1},"offset":null}]}'
    assert ask("PATCH", "/connectors/c/offsets", body).json == {"message": "done"}
    wanted = [Position('{"b":1,"a":"x"}', '{"n":1.5}'), Position('{"c":1}', None)]
    assert herder.calls == [("alter_offsets", "c", wanted)]


def test_resetting_forgets_all(ask, herder):
    assert ask("DELETE", "/connectors/c/offsets").status == 200
    assert herder.calls == [("alter_offsets", "c", None)]


@pytest.mark.parametrize("body", [{}, {"offsets": []}, {"offsets": None}])
def test_an_empty_list_is_400_even_for_an_unknown_connector(ask, body):
    answer = ask("PATCH", "/connectors/x/offsets", body)
    assert answer.status == 400
    assert answer.message == "Partitions / offsets need to be provided for an alter offsets request"


@pytest.mark.parametrize(
    "body",
    [b"", {"x": 1}, {"offsets": [{"x": 1}]}, {"offsets": 1}, {"offsets": [{"partition": 1}]}, {"offsets": ["a"]}],
)
def test_another_shape_is_500_with_a_sentence(ask, body):
    answer = ask("PATCH", "/connectors/c/offsets", body)
    assert answer.status == 500
    assert len(answer.message) > 20
