"""JDBC URLs become libpq URIs."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry_jdbc.url import to_libpq


def test_a_plain_url_keeps_host_port_and_database() -> None:
    assert to_libpq("jdbc:postgresql://db:5433/shop") == ("postgresql://db:5433/shop", [])


def test_a_url_without_host_means_localhost() -> None:
    assert to_libpq("jdbc:postgresql:shop")[0] == "postgresql://localhost/shop"


def test_configured_credentials_win_over_the_url_and_are_escaped() -> None:
    uri, _ = to_libpq("jdbc:postgresql://db/shop?user=a&password=b", "ann", "p@ss/w&rd")
    assert uri == "postgresql://db/shop?user=ann&password=p%40ss%2Fw%26rd"


def test_properties_of_the_java_driver_alone_are_named_and_dropped() -> None:
    uri, dropped = to_libpq("jdbc:postgresql://db/shop?reWriteBatchedInserts=true&ApplicationName=x")
    assert (uri, dropped) == ("postgresql://db/shop?application_name=x", ["reWriteBatchedInserts"])


def test_current_schema_becomes_the_search_path() -> None:
    assert to_libpq("jdbc:postgresql://db/shop?currentSchema=sales")[0].endswith("options=-csearch_path%3Dsales")


def test_several_hosts_pass_through() -> None:
    assert to_libpq("jdbc:postgresql://a:1,b:2/shop?targetServerType=primary")[0] == (
        "postgresql://a:1,b:2/shop?target_session_attrs=primary"
    )


def test_another_database_is_refused_in_a_sentence_without_its_properties() -> None:
    with pytest.raises(ConfigError, match="only PostgreSQL") as caught:
        to_libpq("jdbc:mysql://db/shop?password=secret")
    assert "secret" not in str(caught.value)
