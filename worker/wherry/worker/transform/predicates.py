"""Predicates: which rows a transform is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from wherry.contract.errors import ConfigError
from wherry.contract.javaregex import RegexError, compile_java
from wherry.worker.transform.base import PACKAGE, required
from wherry.worker.transform.headers import has_header
from wherry.worker.transform.routers import topics_of
from wherry.worker.transform.rows import Rows

Mask = npt.NDArray[np.bool_]
PREDICATES_PACKAGE: Final = f"{PACKAGE}predicates."


class Predicate(Protocol):
    """Says which rows it holds for."""

    def test(self, rows: Rows) -> Mask:
        """Returns True for each row it holds for."""


class TopicNameMatches:
    """Holds where the whole topic matches. Setting: pattern."""

    def __init__(self, config: Mapping[str, str]) -> None:
        text = required(config, "pattern")
        try:
            self._pattern = compile_java(text)
        except RegexError as error:
            raise ConfigError(
                f"Invalid value {text} for configuration pattern: Invalid regex: {error}", key="pattern"
            ) from None

    def test(self, rows: Rows) -> Mask:
        """See `Predicate.test`."""
        topics = topics_of(rows)
        known = {topic: self._pattern.fullmatch(topic) is not None for topic in set(topics)}
        return np.fromiter((known[topic] for topic in topics), np.bool_, len(topics))


class HasHeaderKey:
    """Holds where there is a header of a name. Setting: name."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._name = required(config, "name")

    def test(self, rows: Rows) -> Mask:
        """See `Predicate.test`."""
        found: Any = has_header(rows.rest, self._name)
        return np.asarray(found, np.bool_)


class RecordIsTombstone:
    """Holds where the value is null."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Takes no setting."""

    def test(self, rows: Rows) -> Mask:
        """See `Predicate.test`."""
        return rows.value.is_null()
