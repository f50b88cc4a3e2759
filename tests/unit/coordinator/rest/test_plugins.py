"""`/connector-plugins`."""

from __future__ import annotations

import pytest


def test_a_plugin_without_version_shows_none(ask):
    listed = ask("GET", "/connector-plugins?connectorsOnly=false").json
    assert listed == [{"class": "a.B", "type": "source", "version": "1"}, {"class": "c.D", "type": "converter"}]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 1),
        ("?connectorsOnly=", 1),
        ("?connectorsOnly=TRUE", 1),
        ("?connectorsOnly=0", 2),
        ("?connectorsOnly=FALSE", 2),
    ],
)
def test_connectors_only_is_the_default_and_anything_but_true_is_false(ask, query, count):
    assert len(ask("GET", f"/connector-plugins{query}").json) == count


def test_a_key_has_kafkas_members(ask):
    (key,) = ask("GET", "/connector-plugins/B/config").json
    assert list(key) == [
        "name", "type", "required", "default_value", "importance", "documentation", "group", "order_in_group", "width",
        "display_name", "dependents",
    ]  # fmt: skip


def test_an_unknown_plugin_is_404(ask):
    answer = ask("GET", "/connector-plugins/nope/config")
    assert (answer.status, answer.message) == (404, "Unknown plugin nope.")


def test_a_validation_is_200_with_its_errors_inside(ask):
    answer = ask("PUT", "/connector-plugins/B/config/validate/", {"a": 1})
    assert answer.status == 200
    assert answer.json == {
        "name": "B",
        "error_count": 1,
        "groups": ["Common"],
        "configs": [
            {
                "definition": None,
                "value": {"name": "a", "value": "1", "recommended_values": [], "errors": ["bad"], "visible": True},
            }
        ],
    }
