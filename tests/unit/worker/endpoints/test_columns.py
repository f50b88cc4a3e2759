"""Arrow columns from lists, against what pyarrow itself would make."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import HEADERS_TYPE
from wherry.worker.endpoints.columns import binary_array, headers_array, timestamp_array


@settings(deadline=None)  # the first call imports pandas
@given(st.lists(st.none() | st.binary(max_size=20)))
def test_bytes_make_the_column_that_pyarrow_would_make(values: list[bytes | None]) -> None:
    column = binary_array(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.binary()))
    assert column.null_count == values.count(None)


@settings(deadline=None)  # the first call imports pandas
@given(st.lists(st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)))
def test_headers_keep_order_repetition_and_nulls(headers: list[list[tuple[str, bytes | None]] | None]) -> None:
    column = headers_array(headers)
    column.validate(full=True)
    assert column.type == HEADERS_TYPE
    assert [[(pair["name"], pair["value"]) for pair in row] for row in column.to_pylist()] == [
        row or [] for row in headers
    ]


def test_a_missing_timestamp_is_null() -> None:
    column = timestamp_array([(1, 5), (0, -1), (2, 0)])
    assert column.cast(pa.int64()).to_pylist() == [5, None, 0]
    assert timestamp_array([(1, 5)]).null_count == 0
