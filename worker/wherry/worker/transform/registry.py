"""Which transforms a connector uses: class names, aliases, predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError, WherryError
from wherry.worker.transform.base import PACKAGE, Transform, boolean, names_of
from wherry.worker.transform.cast import Cast
from wherry.worker.transform.dedupe import Dedupe
from wherry.worker.transform.explode import Explode
from wherry.worker.transform.fields import ExtractField, HoistField, ValueToKey
from wherry.worker.transform.flatten import Flatten
from wherry.worker.transform.headers import DropHeaders, HeaderFrom, InsertHeader
from wherry.worker.transform.insert import InsertField
from wherry.worker.transform.mask import MaskField
from wherry.worker.transform.metadata import SetSchemaMetadata
from wherry.worker.transform.predicates import (
    PREDICATES_PACKAGE,
    HasHeaderKey,
    Mask,
    Predicate,
    RecordIsTombstone,
    TopicNameMatches,
)
from wherry.worker.transform.replace import ReplaceField
from wherry.worker.transform.routers import RegexRouter, TimestampRouter
from wherry.worker.transform.rows import Rows
from wherry.worker.transform.sql import Sql
from wherry.worker.transform.times import TimestampConverter

Made = TypeVar("Made")
_Make = Callable[[Mapping[str, str]], Transform]


class Filter:
    """Drops every row it is given; meant with a predicate."""

    class_name = f"{PACKAGE}Filter"

    def __init__(self, config: Mapping[str, str]) -> None:
        """Takes no setting."""

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        return rows.take(np.zeros(0, np.int64))


_ON_SIDES: Final = (
    Cast, ExtractField, Flatten, HeaderFrom, HoistField, MaskField, ReplaceField, SetSchemaMetadata, TimestampConverter,
)  # fmt: skip
_PLAIN: Final = (DropHeaders, Filter, InsertHeader, RegexRouter, TimestampRouter, ValueToKey)
# Wherry's own; they answer to their simple names, too.
_OWN: Final = (Dedupe, Explode, Sql)
_PREDICATES: Final[Mapping[str, Callable[[Mapping[str, str]], Predicate]]] = {
    "HasHeaderKey": HasHeaderKey,
    "RecordIsTombstone": RecordIsTombstone,
    "TopicNameMatches": TopicNameMatches,
}


@dataclass(frozen=True, slots=True)
class Link:
    """One transform of a chain, with the rows it is for.

    Attributes:
        alias: Its name in the configuration.
        transform: What it does.
        predicate: Which rows it is for; None means all.
        negate: It is for the other rows.
    """

    alias: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def mask(self, rows: Rows) -> Mask | None:
        """Says which rows it is for; None means all."""
        return None if self.predicate is None else self.predicate.test(rows) != self.negate


def chain_of(
    config: Mapping[str, str], *, is_sink: bool, served: Mapping[str, Transform] | None = None
) -> tuple[Link, ...]:
    """Makes the transforms of a connector, in their order.

    Args:
        config: The connector's configuration.
        is_sink: Whether records come from Kafka.
        served: Transforms that sidecars run, by alias.

    Raises:
        ConfigError: A class is unknown, or a setting is wrong; `key` names it in full.
    """
    predicates = {alias: _predicate(alias, config) for alias in names_of(config, "predicates")}
    made = dict(served or {})
    return tuple(_link(alias, config, predicates, made, is_sink=is_sink) for alias in names_of(config, "transforms"))


def _link(
    alias: str,
    config: Mapping[str, str],
    predicates: Mapping[str, Predicate],
    served: Mapping[str, Transform],
    *,
    is_sink: bool,
) -> Link:
    prefix = f"transforms.{alias}."
    own = _own(config, prefix)
    transform = served.get(alias) or _in(
        prefix, lambda: _make(own.get("type", "").strip(), prefix, is_sink=is_sink)(own)
    )
    name = own.get("predicate", "").strip()
    if name and name not in predicates:
        raise ConfigError(
            f"{prefix}predicate is {name}, which is none of the predicates ({', '.join(predicates) or 'none'}).",
            key=f"{prefix}predicate",
        )
    negate = _in(prefix, lambda: boolean(own, "negate", default=False))
    return Link(alias, transform, predicates.get(name), negate)


def _make(name: str, prefix: str, *, is_sink: bool) -> _Make:
    simple, dollar, side = name.removeprefix(PACKAGE).partition("$")
    if dollar and side in {"Key", "Value"}:
        for on_side in _ON_SIDES:
            if simple == on_side.simple_name:
                return lambda own: on_side(own, is_key=side == "Key")
        if simple == InsertField.simple_name:
            return lambda own: InsertField(own, is_key=side == "Key", is_sink=is_sink)
    elif not dollar:
        for plain in _PLAIN:
            if simple == plain.__name__:
                return plain
        for own_class in _OWN:
            if name in {own_class.class_name, own_class.__name__}:
                return own_class
    raise ConfigError(
        f"Invalid value {name} for configuration {prefix}type: Class {name} could not be found.", key=f"{prefix}type"
    )


def _predicate(alias: str, config: Mapping[str, str]) -> Predicate:
    prefix = f"predicates.{alias}."
    own = _own(config, prefix)
    name = own.get("type", "").strip()
    found = _PREDICATES.get(name.removeprefix(PREDICATES_PACKAGE))
    if found is None:
        raise ConfigError(
            f"Invalid value {name} for configuration {prefix}type: Class {name} could not be found.",
            key=f"{prefix}type",
        )
    return _in(prefix, lambda: found(own))


def _own(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def _in(prefix: str, make: Callable[[], Made]) -> Made:
    """Makes something of the settings under a prefix; an error tells where."""
    try:
        return make()
    except ConfigError as error:
        key = f"{prefix}{error.key}" if error.key and not error.key.startswith(prefix) else error.key or prefix[:-1]
        raise ConfigError(f"{key}: {error.message}" if key not in error.message else error.message, key=key) from None
    except (ValueError, DataError) as error:
        if isinstance(error, WherryError) and not isinstance(error, DataError):
            raise
        raise ConfigError(f"{prefix[:-1]}: {error}", key=prefix[:-1]) from None
