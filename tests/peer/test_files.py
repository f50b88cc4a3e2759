"""Lines from files into topics and values from topics into files: the same on both, and where one follows the other."""

from __future__ import annotations

import pytest
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.scenes import PLAIN, RETURNS, SCHEMALESS, STRINGS, STRUCTS, TEXTS, Kept, play

Both = dict[str, Kept]

PLAIN_LINES = ["one", "two", "", "last but one", "partial", "more ", "lines"]
TEXT_LINES = ["d\u00e9j\u00e0 vu", "\u20acuro", "\U0001f600", "\u00fcber"]


@pytest.fixture(scope="module")
def both(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """What both have made of the same scenes."""
    folder = tmp_path_factory.mktemp("files")
    peers = [Peer(name, folder / name, kafka_address) for name in (CONNECT, WHERRY)]
    kept = {peer.name: Kept() for peer in peers}
    together(peers, lambda peer: play(peer, kept[peer.name]))
    return kept


@pytest.mark.parametrize(
    ("source", "scene", "lines"),
    [
        (PLAIN, "begun", PLAIN_LINES[:4]),
        (PLAIN, "went on", PLAIN_LINES),
        (TEXTS, "begun", TEXT_LINES[:3]),
        (TEXTS, "went on", TEXT_LINES),
        (RETURNS, "begun", ["a", "b", "", "c"]),
        (RETURNS, "went on", ["a", "b", "", "c", "d", "e"]),
        (PLAIN, "taken over", [*PLAIN_LINES, "taken over"]),
        (PLAIN, "started again", [*PLAIN_LINES, "taken over", "taken back"]),
        (RETURNS, "started again", ["a", "b", "", "c", "d", "e", "restarted"]),
    ],
)
def test_both_send_the_same_lines(both: Both, source: str, scene: str, lines: list[str]) -> None:
    assert both[CONNECT].contents[source, scene] == lines
    assert both[WHERRY].contents[source, scene] == lines


@pytest.mark.parametrize(
    ("source", "scene"),
    [
        (PLAIN, "begun"),
        (PLAIN, "went on"),
        (PLAIN, "taken over"),
        (PLAIN, "started again"),
        (RETURNS, "went on"),
        (RETURNS, "started again"),
    ],
)
def test_both_commit_the_same_position(both: Both, source: str, scene: str) -> None:
    assert both[WHERRY].positions[source, scene] == both[CONNECT].positions[source, scene] > 0


def test_positions_count_bytes_so_that_text_beyond_ascii_is_not_read_twice(both: Both) -> None:
    """Kafka Connect counts UTF-16 units and skips bytes: after a restart it begins in the middle of old lines."""
    right = [*TEXT_LINES, "restarted"]
    assert both[WHERRY].positions[TEXTS, "started again"] == len("".join(f"{line}\n" for line in right).encode())
    assert both[WHERRY].contents[TEXTS, "started again"] == right
    assert both[CONNECT].contents[TEXTS, "started again"] != right, "Kafka Connect has mended this: compare it again"


@pytest.mark.parametrize("sink", [STRINGS, SCHEMALESS, STRUCTS, "unsorted"])
def test_both_write_the_same_file(both: Both, sink: str) -> None:
    assert both[WHERRY].files[sink] == both[CONNECT].files[sink]
