"""Plays a walk on both systems, step by step, and tells where they part."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peer.compare import Difference, differences
from tests.peer.peers import CONNECT, Peer
from tests.peer.steps import Append, Ask
from tests.peer.walks.accepted import plain, reason_for
from tests.peer.walks.draw import Walk, told
from tests.peer.walks.moves import Move, Send
from tests.peer.walks.watch import Watcher
from tests.support.rest import Answer
from tests.support.topics import TIMEOUT_S, end_offsets

QUIET_S = 1.5
"""How long after a change nothing is believed: what is shown may still be what was."""
STABLE_S = 1.0
SETTLE_TIMEOUT_S = 30.0
COMMITTED_S = 3.0
"""How long after a change positions are not believed: beyond a wait for lines and a commit, of a second each."""
POLL_S = 0.2
AGAIN_S = 0.3
AGAIN_TIMEOUT_S = 20.0
SECRETS = "tasks=2\nletter=w\n"


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference for which there is no reason.

    Attributes:
        walk: Number of the walk.
        step: Number of its step.
        name: What was done.
        difference: What differs then.
        shown: Whether it is in what is shown afterwards, not in the answer.
    """

    walk: int
    step: int
    name: str
    difference: Difference
    shown: bool

    def __str__(self) -> str:
        where = "afterwards, " if self.shown else ""
        return f"walk {self.walk}, step {self.step}, {self.name}: {where}{self.difference}"


@dataclass(slots=True)
class Played:
    """What came of a walk.

    Attributes:
        findings: What was not explained, at the first step where something was not.
        steps: How many steps were played.
        reasons: How often each reason was needed.
        parted: Whether both went different ways for a reason, which ended it.
        path: What was done and answered, to read.
    """

    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    parted: bool = False
    path: list[str] = field(default_factory=list)


class Stage:
    """Both systems, running and watched. A context manager.

    Args:
        connect: The real Kafka Connect.
        wherry: Ours.
    """

    def __init__(self, connect: Peer, wherry: Peer) -> None:
        self.peers = (connect, wherry)
        for peer in self.peers:
            (peer.directory / "secrets").write_text(SECRETS)
        self._watchers = tuple(Watcher(peer) for peer in self.peers)

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for watcher in self._watchers:
            watcher.close()

    def play(self, walk: Walk) -> Played:
        """Play one walk; its connectors are deleted at its end."""
        played = Played()
        try:
            for number, move in enumerate(walk.moves):
                played.steps = number + 1
                if self._step(walk, number, move, played):
                    break
        finally:
            for place in walk.places:
                for peer in self.peers:
                    peer.ask("DELETE", f"/connectors/{place.name}")
        return played

    def _step(self, walk: Walk, number: int, move: Move, played: Played) -> bool:
        """Play a step; tell whether the walk ends with it."""
        name = told(move)
        played.path.append(f"{number} {name}")
        if isinstance(move, Ask):
            answers = [ask(peer, move) for peer in self.peers]
            statuses = [answer.status for answer in answers]
            played.path.append(f"    {_line(move)}")
            played.path += [
                f"    {peer.name}: {answer.status} {json.dumps(answer.body)[:2000]}"
                for peer, answer in zip(self.peers, answers, strict=True)
            ]
            found = self._judged(walk, number, name, differences(*map(plain, answers)), played, shown=False)
            changes = move.method not in ("GET", "HEAD", "OPTIONS", "TRACE") and "validate" not in move.path
            if not found and len({status < 400 for status in statuses}) > 1:
                played.parted = True
            if found or played.parted or not changes or min(statuses) >= 400:
                return found or played.parted
        else:
            self.put(move)
        return self._judged(walk, number, name, self._settled(walk, time.monotonic()), played, shown=True)

    def put(self, move: Append | Send) -> None:
        """Give both new records."""
        for peer in self.peers:
            if isinstance(move, Append):
                move.run(peer)
            else:
                _produce(peer, move)

    def _judged(
        self, walk: Walk, number: int, name: str, found: Sequence[Difference], played: Played, *, shown: bool
    ) -> bool:
        ended = False
        for difference in found:
            lived = [told(move) for move in walk.moves[:number]]
            reason = reason_for(name, difference, lived, shown=shown)
            if reason is None:
                played.findings.append(Finding(walk.number, number, name, difference, shown))
                ended = True
            else:
                played.reasons[reason] += 1
                # What is not the same any more can't be compared any further.
                played.parted |= shown
        return ended or played.parted

    def _settled(self, walk: Walk, begun: float) -> list[Difference]:
        """Wait until both show the same of a walk's connectors, and return in what they don't, in the end."""
        names = [place.name for place in walk.places]
        deadline = begun + SETTLE_TIMEOUT_S
        while True:
            views = [watcher.view(names) for watcher in self._watchers]
            now = time.monotonic()
            fresh = all(view.asked > begun + QUIET_S and view.since < now - STABLE_S for view in views)
            same = views[0].shown == views[1].shown
            if (fresh and same) or now > deadline:
                break
            time.sleep(POLL_S)
        if not same:
            return _of_bodies(*(view.shown for view in views))
        return self._committed([name for name in names if views[0].shown[name]], begun)

    def _committed(self, names: Sequence[str], begun: float) -> list[Difference]:
        """Wait until both show the same positions and topics, which come with commits."""
        if not names:
            return []
        time.sleep(max(0.0, begun + COMMITTED_S - time.monotonic()))
        deadline, alike = time.monotonic() + SETTLE_TIMEOUT_S, 0
        while True:
            shown = [{name: _details(peer, name) for name in names} for peer in self.peers]
            found = _of_bodies(*shown)
            alike = 0 if found else alike + 1
            if alike > 1 or time.monotonic() > deadline:
                # What Kafka Connect can't tell at all, for as long as that, is no answer to compare with.
                return [difference for difference in found if not _is_momentary(difference.connect)]
            time.sleep(AGAIN_S if alike else POLL_S * 2)


def prepare(stage: Stage, walks: Sequence[Walk]) -> None:
    """Make the topics of some walks, and what is in them and in files before they begin."""
    from confluent_kafka.admin import AdminClient, NewTopic

    topics = [peer.own(topic) for peer in stage.peers for walk in walks for topic in walk.topics]
    admin = AdminClient({"bootstrap.servers": stage.peers[0].bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result(TIMEOUT_S)
    for topic in topics:
        end_offsets(stage.peers[0].bootstrap, topic)  # waits until it has a leader
    for walk in walks:
        for move in walk.begin:
            assert not isinstance(move, Ask)
            stage.put(move)


def play_all(stage: Stage, walks: Sequence[Walk], side_by_side: int) -> Iterator[tuple[Walk, Played]]:
    """Play walks, so many at a time; each is told when it has come to its end, in their order."""
    if not walks:
        return
    prepare(stage, walks)
    with ThreadPoolExecutor(side_by_side) as pool:
        yield from zip(walks, pool.map(stage.play, walks), strict=True)


def ask(peer: Peer, move: Ask) -> Answer:
    """Send a request; again, for a while, while Kafka Connect answers 500 because of a rebalance."""
    deadline = time.monotonic() + AGAIN_TIMEOUT_S
    while (answer := move.run(peer)).status == 500 and "rebalance" in str(answer.body):
        if peer.name != CONNECT or time.monotonic() > deadline:
            break
        time.sleep(AGAIN_S)
    return answer


def keep(played: Played, walk: Walk, folder: Path) -> None:
    """Write down what was done and answered."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"walk-{walk.number}.txt").write_text("\n".join([*played.path, *map(str, played.findings), ""]))


def _produce(peer: Peer, move: Send) -> None:
    from tests.support.topics import produce

    produce(peer.bootstrap, peer.own(move.topic), [(None, value) for value in move.values])


def _details(peer: Peer, name: str) -> Mapping[str, Any]:
    """What is not shown with all connectors: positions, topics, and the configurations of tasks."""
    offsets = peer.ask("GET", f"/connectors/{name}/offsets").body
    if isinstance(offsets, dict) and "offsets" in offsets:
        offsets = sorted(offsets["offsets"], key=json.dumps)
    topics = peer.ask("GET", f"/connectors/{name}/topics").body
    if isinstance(topics, dict) and name in topics:
        topics = sorted(topics[name].get("topics", ()))
    tasks = peer.ask("GET", f"/connectors/{name}/tasks").body
    return {"offsets": offsets, "topics": topics, "tasks": tasks}


def _is_momentary(body: Any) -> bool:
    return isinstance(body, dict) and "rebalance" in str(body.get("message"))


def _of_bodies(connect: Any, wherry: Any) -> list[Difference]:
    return differences(Answer(200, connect, {}), Answer(200, wherry, {}))


def _line(move: Ask) -> str:
    sent = move.raw if move.raw is not None else json.dumps(move.body) if move.body is not None else ""
    return f"{move.method} {move.path[:200]} {sent!s:.2000}"
