"""Every answer of the REST API along the life of a source and a sink, the real Kafka Connect's beside Wherry's.

Wherry answers twice: as a single worker, and as two coordinators of which the one that does not lead is asked.
"""

from __future__ import annotations

import pytest
from tests.peer import steps, steps_cluster, steps_offsets, steps_protocol, steps_states, steps_validation
from tests.peer.accepted import ACCEPTED
from tests.peer.compare import differences, unwanted
from tests.peer.peers import CLUSTER, CONNECT, WHERRY, Peer, together
from tests.peer.steps import Ask
from tests.support.rest import Answer

STEPS = (
    *steps.STEPS,
    *steps_protocol.STEPS,
    *steps_validation.STEPS,
    *steps_offsets.STEPS,
    *steps_states.STEPS,
)
OF_CLUSTERS = steps_cluster.STEPS
Answers = dict[str, dict[str, Answer]]
ASKED = [
    (step.name, ours)
    for ours, lived in ((WHERRY, STEPS), (CLUSTER, (*STEPS, *OF_CLUSTERS)))
    for step in lived
    if isinstance(step, Ask)
]


@pytest.fixture(scope="module")
def answers(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What both have answered to each step; a step that one of them never came to is missing there."""
    folder = tmp_path_factory.mktemp("rest")
    names = (CONNECT, WHERRY, CLUSTER)
    peers = [Peer(name, folder / name, kafka_address, distributed=name == CONNECT) for name in names]
    given: Answers = {peer.name: {} for peer in peers}
    together(peers, lambda peer: _live(peer, given[peer.name]))
    return given


def _live(peer: Peer, given: dict[str, Answer]) -> None:
    try:
        peer.start()
        for step in STEPS if peer.name == WHERRY else (*STEPS, *OF_CLUSTERS):
            answer = step.run(peer)
            if isinstance(step, Ask) and answer is not None:
                given[step.name] = answer
    finally:
        peer.stop()


def test_every_step_has_a_name_of_its_own() -> None:
    assert len(set(ASKED)) == len(ASKED)


@pytest.mark.parametrize(("step", "ours"), ASKED)
def test_wherry_answers_as_kafka_connect_does(answers: Answers, step: str, ours: str) -> None:
    found = differences(answers[CONNECT][step], answers[ours][step])
    wrong = unwanted(step, found, ACCEPTED)
    assert not wrong, "\n".join(str(difference) for difference in wrong)


def test_every_accepted_difference_is_still_one(answers: Answers) -> None:
    seen = {
        entry
        for step, ours in ASKED
        for difference in differences(answers[CONNECT][step], answers[ours][step])
        for entry in ACCEPTED
        if entry.covers(step, difference)
    }
    assert seen == set(ACCEPTED), f"no longer needed: {set(ACCEPTED) - seen}"
