"""What a sidecar has to say by itself: a bounded queue of events, for one subscriber.

While nobody subscribes, log records go to stderr, which the host captures, and metrics are dropped. When the
subscriber is slower than the connector talks, the oldest events make room and are counted.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wherry.connector.v1 import plugin_pb2

EVENTS_MAX: Final = 4096
MESSAGE_CHARACTERS_MAX: Final = 8192
_LEVELS: Final = {
    logging.DEBUG: plugin_pb2.LOG_LEVEL_DEBUG,
    logging.INFO: plugin_pb2.LOG_LEVEL_INFO,
    logging.WARNING: plugin_pb2.LOG_LEVEL_WARN,
    logging.ERROR: plugin_pb2.LOG_LEVEL_ERROR,
}


class Events:
    """The queue. Safe to use from any thread."""

    def __init__(self) -> None:
        self._events: deque[plugin_pb2.EventsResponse] = deque()
        self._condition = threading.Condition()
        self._subscriber = 0
        self._dropped = 0
        self._closed = False

    @property
    def subscribed(self) -> bool:
        """Whether someone listens."""
        return self._subscriber > 0

    def put(self, **event: Any) -> None:
        """Adds an event, such as `log=LogEvent(…)`."""
        made = plugin_pb2.EventsResponse(time_ms=int(time.time() * 1000), **event)
        with self._condition:
            if len(self._events) >= EVENTS_MAX:
                self._events.popleft()
                self._dropped += 1
            self._events.append(made)
            self._condition.notify_all()

    def subscribe(self, active: Any, *, poll_s: float = 1.0) -> Iterator[plugin_pb2.EventsResponse]:
        """Yields events until `active()` is false, the queue closes, or another subscribes."""
        with self._condition:
            self._subscriber += 1
            mine = self._subscriber
            self._condition.notify_all()
        while True:
            with self._condition:
                while not self._events and not self._closed and mine == self._subscriber and active():
                    self._condition.wait(poll_s)
                if mine != self._subscriber or not active() or (self._closed and not self._events):
                    if mine == self._subscriber:
                        self._subscriber = 0
                    return
                event = self._events.popleft()
                dropped, self._dropped = self._dropped, 0
            if dropped:
                yield plugin_pb2.EventsResponse(
                    time_ms=event.time_ms,
                    log=plugin_pb2.LogEvent(
                        level=plugin_pb2.LOG_LEVEL_WARN, logger="wherry.sdk", message=f"{dropped} events were dropped."
                    ),
                )
            yield event

    def close(self) -> None:
        """Lets the subscriber end once it has everything."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def log(self, level: int, logger: str, message: str, fields: Mapping[str, Any]) -> None:
        """Passes a log record on: to the subscriber, else to stderr."""
        text = message[:MESSAGE_CHARACTERS_MAX]
        texts = {name: str(value)[:MESSAGE_CHARACTERS_MAX] for name, value in fields.items()}
        if not self.subscribed:
            told = "".join(f" {name}={value}" for name, value in texts.items())
            sys.stderr.write(f"{logging.getLevelName(level)} {logger} {text}{told}\n")
            return
        known = max((number for number in _LEVELS if number <= level), default=logging.DEBUG)
        self.put(log=plugin_pb2.LogEvent(level=_LEVELS[known], logger=logger, message=text, fields=texts))


class ConnectorEvents(Events):
    """Events of one connector in a process that plans for several: the process's queue, under the connector's name."""

    def __init__(self, events: Events, connector: str) -> None:
        super().__init__()
        self._of_process = events
        self._connector = connector

    @property
    def subscribed(self) -> bool:
        """Whether someone listens to the process."""
        return self._of_process.subscribed

    def put(self, **event: Any) -> None:
        """Adds an event to the process's."""
        self._of_process.put(connector=self._connector, **event)


class EventsHandler(logging.Handler):
    """Passes what libraries log through `logging` on as events."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Passes one record on; a record that can't be formatted is told as such."""
        try:
            self._events.log(record.levelno, record.name, self.format(record), {})
        except Exception:
            self.handleError(record)


class Logger:
    """An author's logger: a text and named values, `self.log.info("Read a file", path=path)`."""

    def __init__(self, events: Events, name: str) -> None:
        self._events = events
        self._name = name

    def debug(self, message: str, **fields: Any) -> None:
        """Logs for someone who is looking for a fault; not shown unless the logger "wherry" is set to DEBUG."""
        if logging.getLogger("wherry").isEnabledFor(logging.DEBUG):
            self._events.log(logging.DEBUG, self._name, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """Logs the normal course of things."""
        self._events.log(logging.INFO, self._name, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Logs that something is odd and the work goes on."""
        self._events.log(logging.WARNING, self._name, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Logs that something failed."""
        self._events.log(logging.ERROR, self._name, message, fields)
