"""What a writer says of a transaction that has failed."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from wherry.contract.batch import RowError
from wherry.contract.errors import ErrorClass, FencedError, SchemaError, TransientError
from wherry.worker.endpoints import transactional_writer
from wherry.worker.endpoints.transactional_writer import TransactionalWriter

FAILED = TransientError("Erroneous state.", reason="STATE")


class Late:
    """A client that reports on its records some polls after it has failed their transaction."""

    def __init__(self, inner: Any, polls: int, records: int = 3) -> None:
        self._inner, self._polls, self._records = inner, polls, records

    def __len__(self) -> int:
        return self._records

    def poll(self, timeout_s: float) -> int:
        self._polls -= 1
        if self._polls == 0:
            self._inner.undelivered = RowError(0, ErrorClass.SCHEMA, "TOO_LARGE", message="It is too large.")
        return 0


def writer_of(polls: int, records: int = 3) -> TransactionalWriter:
    made: Any = TransactionalWriter.__new__(TransactionalWriter)
    made._id = "id"
    made._inner = SimpleNamespace(undelivered=None, fatal_error=None)
    made._producer = Late(made._inner, polls, records)
    return made  # type: ignore[no-any-return]


def test_a_lease_that_is_over_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def refuse() -> None:
        done.append("asked")
        raise FencedError("generation 9 has taken over")

    inner: Any = SimpleNamespace(
        producer=SimpleNamespace(
            init_transactions=lambda timeout_s: done.append("opened"), list_topics=lambda topic, timeout: None
        ),
        close=lambda: done.append("closed"),
    )
    monkeypatch.setattr(transactional_writer, "positions_reader", lambda *_: nullcontext(lambda: done.append("read")))
    client: Any = SimpleNamespace(values={"transactional.id": "id"})
    with pytest.raises(FencedError):
        TransactionalWriter(client, {}, "c", "offsets", make=lambda _: inner, confirm=refuse)
    assert done == ["opened", "asked", "closed"], "asked only when whoever came before is shut out"


def test_a_record_that_spoilt_a_transaction_is_named_though_its_report_comes_later() -> None:
    error = writer_of(polls=4)._reason(FAILED)
    assert isinstance(error, SchemaError)
    assert "refused within a transaction, which fails as a whole: It is too large." in str(error)


def test_who_was_fenced_is_told_in_one_sentence_wherever_the_client_says_so() -> None:
    told = FencedError("Failed to add partitions to transaction.", reason="FENCED")
    assert str(writer_of(polls=-1)._reason(told)).startswith("Another producer has taken over the transactional id id")


def test_a_transaction_that_no_record_spoilt_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional_writer, "REPORT_WAIT_S", 0.05)
    for writer in (writer_of(polls=-1), writer_of(polls=-1, records=0)):
        error = writer._reason(FAILED)
        assert isinstance(error, TransientError)
        assert "is done again" in str(error)
