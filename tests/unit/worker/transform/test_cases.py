"""Every transform answers as Kafka Connect's does: its tables, played row by row and in columns."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import transforms as cases

from wherry.contract.errors import ConfigError
from wherry.worker.transform import lift
from wherry.worker.transform.registry import chain_of

ALL = list(cases.cases())
USED = [case for case in ALL if not case.refused]
REFUSED = [case for case in ALL if case.refused]
MANY = lift.ROWS_MIN + 6


def right(mine: dict[str, Any], real: dict[str, Any]) -> bool:
    for side in ("key", "value"):
        told, found = real.get(side), mine.get(side)
        if told == {"unwritable": True}:
            # What Kafka Connect itself can't write is no measure of ours.
            mine, real = {**mine, side: None}, {**real, side: None}
        elif found is None or told is None:
            # Null is null, with a schema or without.
            for given in (found, told):
                if given is not None and given["payload"] is not None:
                    return False
            mine, real = {**mine, side: None}, {**real, side: None}
    return bool(cases.equal(mine, real))


@pytest.mark.parametrize("case", USED, ids=str)
@pytest.mark.parametrize("rows", [1, MANY], ids=["one row", "many rows"])
def test_a_record_fares_as_in_kafka_connect(case, rows):
    for record, real in case.records:
        mine = cases.play(case, record, rows)
        assert right(mine, real), f"{record}\nwanted {real}\ngot    {mine}"


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_configuration_that_kafka_connect_refuses_at_start_is_refused(case):
    with pytest.raises(ConfigError) as refused:
        chain_of(case.config, is_sink=True)
    assert case.refused in refused.value.message
