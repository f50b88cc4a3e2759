"""The schema registry: schemas by id, ids of schemas, with what was learnt kept within bounds.

Settings are those of Confluent's converters; `access.py` reads how the registry is reached. The client is made at the
first use, because workers are forked. What may pass (no connection, a time-out, a 5xx, too many requests) is a
`TransientError` of the whole batch: its records are converted again later. An id that no schema has, or a schema that
the registry refuses, is an error of the records.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.worker.convert import DataError
from wherry.worker.convert.registered.access import Access, access_of

# Answers of the registry kept per converter; a schema more pushes out the one that was used longest ago.
SCHEMAS_KNOWN_MAX: Final = 1_000
# How long an unknown id stays unknown, so that poison doesn't become a request per record.
UNKNOWN_FOR_S: Final = 30.0

_REFERENCES_DEPTH_MAX: Final = 50
_UNAUTHORISED: Final = frozenset({401, 403})
_MAY_PASS: Final = frozenset({408, 429})
_STRATEGY_PACKAGE: Final = "io.confluent.kafka.serializers.subject."
STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")

K = TypeVar("K")
V = TypeVar("V")


class Known(Generic[K, V]):
    """A few things known by a key; the one used longest ago is forgotten first."""

    def __init__(self, size_max: int = SCHEMAS_KNOWN_MAX) -> None:
        self._things: OrderedDict[K, V] = OrderedDict()
        self._size_max = size_max

    def __len__(self) -> int:
        return len(self._things)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Returns what is known, or makes it."""
        if key in self._things:
            self._things.move_to_end(key)
            return self._things[key]
        found = make()
        self._things[key] = found
        if len(self._things) > self._size_max:
            self._things.popitem(last=False)
        return found

    def forget(self, key: K) -> None:
        """Forgets one."""
        self._things.pop(key, None)


@dataclasses.dataclass(frozen=True, slots=True)
class Registered:
    """A schema of the registry.

    Attributes:
        text: The schema.
        kind: AVRO, PROTOBUF or JSON.
        references: Texts of the schemas it refers to, by the name it calls them; each after those it refers to itself.
        id: Its number.
        version: Its version within the subject asked for; None when that isn't known.
    """

    text: str
    kind: str
    references: tuple[tuple[str, str], ...]
    id: int
    version: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Settings of one converter.

    Attributes:
        access: How the registry is reached.
        register: Whether schemas that the registry lacks are put there.
        use_latest: Whether records are written with the subject's latest schema instead of their own.
        normalize: Whether the registry shall compare schemas regardless of their layout.
        strategy: How a subject gets its name.
        suffix: What the names of a topic's subjects end with.
    """

    access: Access
    register: bool
    use_latest: bool
    normalize: bool
    strategy: str
    suffix: str

    @classmethod
    def of(cls, config: Mapping[str, str], *, is_key: bool) -> RegistrySettings:
        """Reads the settings of a converter, without its prefix.

        Raises:
            ConfigError: There is no address, or a setting can't be used.
        """
        side = "key" if is_key else "value"
        named = config.get(f"{side}.subject.name.strategy", STRATEGIES[0]).strip().removeprefix(_STRATEGY_PACKAGE)
        if named not in STRATEGIES:
            raise ConfigError(
                f"Invalid value {named} for configuration {side}.subject.name.strategy: no such strategy; there are "
                f"{', '.join(STRATEGIES)}.",
                key=f"{side}.subject.name.strategy",
            )
        return cls(
            access_of(config),
            register=boolean(config, "auto.register.schemas", default=True),
            use_latest=boolean(config, "use.latest.version", default=False),
            normalize=boolean(config, "normalize.schemas", default=False),
            strategy=named,
            suffix=side,
        )

    def subject(self, topic: str, record: str | None) -> str:
        """Returns the subject of a topic's schemas.

        Args:
            topic: The topic.
            record: Full name of the record; None when the schema has none.

        Raises:
            DataError: The strategy wants a name and there is none.
        """
        if self.strategy == STRATEGIES[0]:
            return f"{topic}-{self.suffix}"
        if not record:
            raise DataError(
                f"{self.strategy} names subjects after records, and this schema has no name.", reason="NO_RECORD_NAME"
            )
        return record if self.strategy == STRATEGIES[1] else f"{topic}-{record}"


def boolean(config: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Reads a setting that is true or false."""
    text = config.get(key)
    return default if text is None else text.strip().lower() == "true"


class Registry:
    """What a converter asks the registry, with the errors that the engine understands."""

    def __init__(self, settings: RegistrySettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._made: Any = None
        self._schemas: Known[tuple[int, str], Registered] = Known()
        self._unknown: Known[int, tuple[float, DataError]] = Known()
        self._ids: Known[tuple[str, str], Registered] = Known()
        self._answers = 0

    def schema(self, schema_id: int, subject: str) -> Registered:
        """Returns a schema by its id.

        Args:
            schema_id: The id.
            subject: Where its version is looked for.

        Raises:
            DataError: The registry has no such schema.
            TransientError: The registry doesn't answer now.
        """
        key = (schema_id, subject)
        told, error = self._unknown.get(schema_id, lambda: (0.0, DataError("")))
        if told and self._clock() - told < UNKNOWN_FOR_S:
            raise error
        self._unknown.forget(schema_id)
        try:
            return self._schemas.get(key, lambda: self._fetch(schema_id, subject))
        except DataError as missing:
            found = missing
            self._unknown.get(schema_id, lambda: (self._clock(), found))
            raise

    def register(self, subject: str, kind: str, text: str) -> Registered:
        """Returns the schema that a subject's records are written with.

        That is the latest one, or else the one given, which is registered unless that isn't wanted.

        Raises:
            DataError: The registry refuses it, or doesn't have it and mustn't get it.
            TransientError: The registry doesn't answer now.
        """
        return self._ids.get((subject, text), lambda: self._register(subject, kind, text))

    def _fetch(self, schema_id: int, subject: str) -> Registered:
        from confluent_kafka.schema_registry import Schema

        schema = self._ask(f"schema {schema_id}", lambda client: client.get_schema(schema_id, subject))
        plain = Schema(schema.schema_str, schema.schema_type, schema.references)
        version = self._version(subject, schema_id, plain)
        return Registered(schema.schema_str, schema.schema_type or "AVRO", self._references(schema), schema_id, version)

    def _version(self, subject: str, schema_id: int, schema: Any) -> int | None:
        """The version of a schema within a subject; None where it can't be known, as under another name strategy.

        Raises:
            TransientError: The registry doesn't answer now. What it gives is kept, and must not lack what it has.
        """
        try:
            found = self._ask(
                f"the version of schema {schema_id}", lambda client: client.lookup_schema(subject, schema)
            )
        except TransientError as error:
            if error.reason == "REGISTRY_UNREACHABLE" and not _is_of_the_network(error.__context__):
                return None  # its answer is of another kind, and will be
            raise
        except WherryError:
            return None
        return None if found is None else found.version

    def _references(self, schema: Any) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}

        def follow(references: Any, depth: int) -> None:
            if depth > _REFERENCES_DEPTH_MAX:
                raise DataError("The schema's references go round in a circle.", reason="BAD_SCHEMA")
            for reference in references or ():
                if reference.name in found:
                    continue
                other = self._ask(
                    f"the reference {reference.name}",
                    functools.partial(_version, subject=reference.subject, version=reference.version),
                )
                follow(other.references, depth + 1)
                found[reference.name] = other.schema_str

        follow(schema.references, 0)
        return tuple(found.items())

    def _register(self, subject: str, kind: str, text: str) -> Registered:
        from confluent_kafka.schema_registry import Schema

        if self.settings.use_latest:
            latest = self._ask(f"the latest schema of {subject}", lambda client: client.get_latest_version(subject))
            found = latest.schema
            return Registered(found.schema_str, found.schema_type or kind, self._references(found), latest.schema_id)
        schema = Schema(text, kind)
        normalize = self.settings.normalize
        if self.settings.register:
            number = self._ask(
                f"registering a schema of {subject}",
                lambda client: client.register_schema(subject, schema, normalize_schemas=normalize),
            )
        else:
            number = self._ask(
                f"the schema among those of {subject}",
                lambda client: client.lookup_schema(subject, schema, normalize_schemas=normalize).schema_id,
            )
        return Registered(text, kind, (), number)

    def _client(self) -> Any:
        if self._made is None:
            self._made = self.settings.access.connect(**{"cache.capacity": SCHEMAS_KNOWN_MAX})
        return self._made

    def _ask(self, what: str, call: Callable[[Any], Any]) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        client = self._client()
        self._answers += 1
        if self._answers % SCHEMAS_KNOWN_MAX == 0:
            # The client remembers every schema for ever; what is needed is known here.
            client.clear_caches()
        try:
            return call(client)
        except SchemaRegistryError as error:
            raise self._told(what, error.http_status_code, error.error_message) from None
        except WherryError:
            raise
        except Exception as error:  # whatever its HTTP client throws: no connection, time-out, TLS
            shown, why = self.settings.access.shown, str(error) or type(error).__name__
            raise TransientError(
                f"The schema registry at {shown} doesn't answer ({what}): {why}.",
                reason="REGISTRY_UNREACHABLE",
            ) from None

    def _told(self, what: str, status: int, message: str) -> WherryError:
        told = f"The schema registry at {self.settings.access.shown} answered {status} ({what}): {message}"
        if status in _UNAUTHORISED:
            return AuthError(told, reason="REGISTRY_REFUSED")
        if status >= 500 or status in _MAY_PASS:
            return TransientError(told, reason="REGISTRY_UNAVAILABLE")
        return DataError(told, reason="INCOMPATIBLE_SCHEMA" if status == 409 else "REGISTRY_REFUSED")


def _version(client: Any, subject: str, version: int) -> Any:
    return client.get_version(subject, version).schema


def _is_of_the_network(error: BaseException | None) -> bool:
    """Whether a request was not answered, as the registry's client tells by one HTTP library or another."""
    return isinstance(error, OSError) or any(kind.__name__ == "HTTPError" for kind in type(error).__mro__)
