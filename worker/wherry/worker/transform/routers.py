"""RegexRouter and TimestampRouter: other topics. Positions stay those of the topic a record was read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.javaregex import RegexError, compile_java, expand_java
from wherry.worker.transform.base import PACKAGE, required
from wherry.worker.transform.dateformat import DateFormat, PatternError
from wherry.worker.transform.failing import ArgumentError, Failures, GroupError, RowsFailedError
from wherry.worker.transform.rows import Rows


class RegexRouter:
    """Replaces topics that match as a whole. Settings: regex, replacement."""

    class_name = f"{PACKAGE}RegexRouter"

    def __init__(self, config: Mapping[str, str]) -> None:
        text = required(config, "regex")
        try:
            self._pattern = compile_java(text)
        except RegexError as error:
            raise ConfigError(
                f"Invalid value {text} for configuration regex: Invalid regex: {error}", key="regex"
            ) from None
        self._replacement = required(config, "replacement")

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        return with_topics(rows, self._route)

    def _route(self, topic: str) -> str:
        if not self._pattern.fullmatch(topic):
            return topic
        found = self._pattern.search(topic)
        if found is None:
            return topic
        try:
            return topic[: found.start()] + expand_java(self._replacement, found) + topic[found.end() :]
        except IndexError as error:
            raise GroupError(str(error)) from None
        except RegexError as error:
            raise ArgumentError(str(error)) from None


class TimestampRouter:
    """Makes topics of topic and time. Settings: topic.format, timestamp.format."""

    class_name = f"{PACKAGE}TimestampRouter"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._topic_format = config.get("topic.format", "${topic}-${timestamp}").strip()
        self._problem: str | None = None
        self._format: DateFormat | None = None
        try:
            self._format = DateFormat(config.get("timestamp.format", "yyyyMMdd").strip())
        except PatternError as error:
            # As in Kafka Connect: only a record shows it.
            self._problem = str(error)

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        times = rows.rest.timestamp
        failures = Failures()
        moments = (
            [None] * len(rows) if times is None else times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        )
        for row, moment in enumerate(moments):
            if moment is None:
                failures.add(row, DataError("Timestamp missing on record."))
            elif self._format is None:
                failures.add(row, ArgumentError(self._problem or ""))
        failures.check()
        assert self._format is not None or not moments
        known: dict[tuple[str, int], str] = {}
        topics = topics_of(rows)
        routed = []
        for topic, moment in zip(topics, moments, strict=True):
            name = known.get((topic, moment))
            if name is None:
                assert self._format is not None
                name = self._topic_format.replace("${topic}", topic).replace(
                    "${timestamp}", self._format.format(moment)
                )
                known[topic, moment] = name
            routed.append(name)
        return _routed(rows, routed)


def topics_of(rows: Rows) -> list[str]:
    """Returns the topic of each row; empty text for none."""
    column = rows.rest.stored("topic")
    if column is None:
        return [rows.rest.constants.topic or ""] * len(rows)
    return [topic or "" for topic in column.to_pylist()]


def with_topics(rows: Rows, route: Callable[[str], str]) -> Rows:
    """Returns the rows with other topics, each found once.

    Raises:
        RowsFailedError: `route` raised DataError for a topic.
    """
    topics = topics_of(rows)
    routes: dict[str, str | DataError] = {}
    for topic in dict.fromkeys(topics):
        try:
            routes[topic] = route(topic)
        except DataError as error:
            routes[topic] = error
    failed = {row: found for row, topic in enumerate(topics) if isinstance(found := routes[topic], DataError)}
    if failed:
        raise RowsFailedError(failed)
    if all(topic == found for topic, found in routes.items()):
        return rows
    return _routed(rows, [str(routes[topic]) for topic in topics])


def _routed(rows: Rows, topics: list[str]) -> Rows:
    if len(set(topics)) == 1:
        rest = rows.rest.with_columns(topic=None)
        return replace(rows, rest=rest.with_constants(replace(rest.constants, topic=topics[0])))
    return replace(rows, rest=rows.rest.with_columns(topic=pa.array(topics, pa.string())))
