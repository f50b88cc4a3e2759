"""Choosing ports and telling that one is taken."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from wherry.coordinator.dev.errors import PortTakenError
from wherry.coordinator.dev.ports import accepts_connections, any_accepts_connections, free_ports, require_free


def test_free_ports_are_distinct_and_free() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        require_free(port, "a test")


def test_a_free_port_is_none_that_the_system_gives_to_a_client_meanwhile() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 <= port < first for port in free_ports(20))


def test_a_port_in_use_is_told_with_its_number_and_purpose() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} for a test is already in use on 127.0.0.1"):
            require_free(port, "a test")
        assert accepts_connections(port)
    assert not accepts_connections(port)


def test_one_live_address_of_several_is_enough() -> None:
    (dead,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        live = server.getsockname()[1]
        assert any_accepts_connections(f"127.0.0.1:{dead}, PLAINTEXT://127.0.0.1:{live}")
    assert not any_accepts_connections(f"127.0.0.1:{dead}")


@pytest.mark.parametrize("address", ["", "nonsense", "host:port", ","])
def test_what_is_no_address_reaches_nobody(address: str) -> None:
    assert not any_accepts_connections(address)
