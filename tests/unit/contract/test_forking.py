"""What a host and a warm process say to one another."""

from __future__ import annotations

import os

from wherry.contract.forking import ForkRequest, pair, receive_request, send_request

REQUEST = ForkRequest(17, {"WHERRY_ENDPOINT": "unix:///run/ä b.sock"}, (1, 3))


def test_a_request_is_read_as_it_was_written() -> None:
    assert ForkRequest.decode(REQUEST.encode()) == REQUEST


def test_a_request_brings_a_descriptor_to_print_to() -> None:
    ours, theirs = pair()
    read_fd, write_fd = os.pipe()
    with ours, theirs:
        send_request(ours, REQUEST, write_fd)
        os.close(write_fd)
        received = receive_request(theirs)
    assert received is not None
    request, output_fd = received
    os.write(output_fd, b"hello")
    os.close(output_fd)
    assert (request, os.read(read_fd, 10)) == (REQUEST, b"hello")
    os.close(read_fd)


def test_a_host_that_is_gone_is_no_request() -> None:
    ours, theirs = pair()
    ours.close()
    with theirs:
        assert receive_request(theirs) is None
