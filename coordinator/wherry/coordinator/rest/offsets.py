"""`/connectors/{c}/offsets`: committed positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from wherry.contract.position import Position
from wherry.coordinator.api import BadRequestError
from wherry.coordinator.offsets import NO_PARTITION
from wherry.coordinator.rest.bodies import BodyError, known_fields, loads
from wherry.coordinator.rest.routing import Call, Route, json_response


def _get(call: Call) -> Response:
    positions = call.herder.offsets(call.name)
    shapes = [{"partition": position.partition_map, "offset": position.offset_map} for position in positions]
    return json_response({"offsets": shapes})


def _alter(call: Call) -> Response:
    value = loads(call.body) if call.body.strip() else None
    if value is None:
        raise BodyError('The request body is missing: {"offsets": [{"partition": {…}, "offset": {…}}]} is expected.')
    entries = known_fields(value, "ConnectorOffsets", ("offsets",)).get("offsets")
    if entries is not None and not isinstance(entries, list):
        raise BodyError('"offsets" must be a list of {"partition": {…}, "offset": {…}}.')
    # Emptiness is told before anything is asked about the connector, as the real worker does.
    if not entries:
        raise BadRequestError("Partitions / offsets need to be provided for an alter offsets request")
    positions = [_position(entry) for entry in entries]
    return json_response({"message": call.herder.alter_offsets(call.name, positions)})


def _reset(call: Call) -> Response:
    return json_response({"message": call.herder.alter_offsets(call.name, None)})


def _position(entry: Any) -> Position:
    fields = known_fields(entry, "ConnectorOffset", ("partition", "offset"))
    partition, offset = fields.get("partition"), fields.get("offset")
    if partition is not None and not isinstance(partition, Mapping):
        raise BodyError('"partition" must be a JSON object.')
    if offset is not None and not isinstance(offset, Mapping):
        raise BodyError('"offset" must be a JSON object, or null to reset the partition.')
    if partition is None:
        return Position(NO_PARTITION, Position.of({}, offset).offset)
    return Position.of(partition, offset)


_PATH = "/connectors/{connector}/offsets"

ROUTES = (
    Route("GET", _PATH, _get),
    Route("PATCH", _PATH, _alter, takes_body=True),
    Route("DELETE", _PATH, _reset),
)
