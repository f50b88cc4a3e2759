"""The lines FileStreamSink writes: the text form Java gives to each value. Pure."""

from __future__ import annotations

import pyarrow as pa

from wherry.contract.java_text import java_texts


def texts_of(values: pa.Array) -> list[str]:
    """Returns one text for each value; `null` for null.

    Bytes are taken for UTF-8: Kafka Connect prints the address of an array there, which is of use to nobody.
    """
    if pa.types.is_binary(values.type):
        return ["null" if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()]
    if pa.types.is_string(values.type) and values.null_count == 0:
        return list(values.to_pylist())
    return ["null" if text is None else text for text in java_texts(values)]
