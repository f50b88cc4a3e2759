"""Chaos: everything runs for real and is hurt at a random moment, from a seed that is printed.

pytest tests/chaos -m chaos                      a million records through each flow; by hand
pytest tests/chaos -m integration                the quick part, as CI runs it
… --records 300000 --seed 7 --flows kafka-file   other sizes, a moment again, one flow alone
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.chaos import limits
from tests.chaos.flows import FileToKafka, Flow, KafkaToFile, KafkaToPostgres
from tests.chaos.run import Run
from tests.support.fixtures import bootstrap, kafka, own_kafka, postgres
from tests.support.standalone import Standalone

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.postgres import LocalPostgres

__all__ = ["bootstrap", "kafka", "own_kafka", "postgres"]

FLOWS = ("file-kafka", "kafka-file", "kafka-postgres")
_HERE = Path(__file__).parent
MakeRun = Callable[..., Run]
SEED_IN_CI = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run by hand may want to change."""
    group = parser.getgroup("chaos")
    group.addoption("--records", type=int, default=None, help="records of each flow")
    group.addoption("--seed", type=int, default=None, help="seed of the moments at which faults come")
    group.addoption("--flows", default=",".join(FLOWS), help="flows to run, separated by commas")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that hurt something."""
    for item in items:
        if _HERE in item.path.parents and item.path.name != "test_verdict.py":
            item.add_marker(pytest.mark.chaos)


@pytest.fixture
def records(request: pytest.FixtureRequest) -> int:
    """How many records each flow gets."""
    wanted: int | None = request.config.getoption("--records", None)
    return wanted or (limits.RECORDS_IN_CI if _in_ci(request) else limits.RECORDS_BY_HAND)


@pytest.fixture
def recovery_s(request: pytest.FixtureRequest) -> float:
    """How long a flow may stand still after a fault."""
    return limits.RECOVERY_IN_CI_S if _in_ci(request) else limits.RECOVERY_S


def _in_ci(request: pytest.FixtureRequest) -> bool:
    return "integration" in str(request.config.getoption("markexpr"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test, printed so that its moments can be had again; in CI always the same."""
    wanted: int | None = request.config.getoption("--seed", None)
    if wanted is None and _in_ci(request):
        wanted = SEED_IN_CI
    chosen = random.SystemRandom().randrange(1_000_000) if wanted is None else wanted
    print(f"\nseed {chosen}")
    return chosen


@pytest.fixture
def new_run(
    request: pytest.FixtureRequest, records: int, seed: int, postgres: LocalPostgres, tmp_path: Path
) -> Iterator[MakeRun]:
    """Makes runs: `new_run(bootstrap, flows=…, directory=…)`; use them as context managers."""
    chosen = str(request.config.getoption("--flows", ",".join(FLOWS))).split(",")
    with ExitStack() as stack:

        def make(broker: EmbeddedKafka, *, flows: tuple[str, ...] = FLOWS, directory: Path | None = None) -> Run:
            wanted = [kind for kind in flows if kind in chosen]
            if not wanted:
                pytest.skip(f"--flows leaves none of {', '.join(flows)}")
            made = [_flow(kind, broker.bootstrap, directory or tmp_path, postgres) for kind in wanted]
            for flow in made:
                stack.callback(flow.close)
            # The commit interval bounds what may come twice and how long rows stay unseen in PostgreSQL.
            system = Standalone(bootstrap=broker.bootstrap, settings={"offset.flush.interval.ms": "500"})
            stack.callback(system.close)
            return Run(system, made, records, seed)

        yield make


def _flow(kind: str, bootstrap: str, directory: Path, postgres: LocalPostgres) -> Flow:
    name = f"{kind}-{uuid.uuid4().hex[:6]}"
    match kind:
        case "file-kafka":
            return FileToKafka(name, bootstrap, directory)
        case "kafka-file":
            return KafkaToFile(name, bootstrap, directory)
        case "kafka-postgres":
            return KafkaToPostgres(name, bootstrap, postgres)
        case _:
            raise pytest.UsageError(f"There is no flow {kind}: choose from {', '.join(FLOWS)}.")
