"""How calls name their connector."""

from __future__ import annotations

from wherry.contract.shared import connector_in, connector_metadata


def test_a_call_names_its_connector_whatever_its_characters() -> None:
    assert connector_in(connector_metadata("Größe 東京")) == "Größe 東京"


def test_a_call_to_a_process_of_its_own_names_none() -> None:
    assert connector_metadata("") == []
    assert connector_in([("traceparent", "00-1")]) == ""
    assert connector_in(None) == ""
