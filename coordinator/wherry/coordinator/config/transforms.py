"""Transformations and predicates as the coordinator must know them: names, keys, and what may be wrong with values.

The worker runs them; rooms do not import one another, so names and keys stand here once more. Sentences about values
are Kafka Connect's; they leave out the prefix that the key has in a connector's configuration, as there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from wherry.contract.config import ConfigKey, ConfigType, Importance, Width, invalid
from wherry.contract.javaregex import RegexError, compile_java
from wherry.coordinator.config.report import Report
from wherry.coordinator.config.versions import VersionRange, not_found

PACKAGE: Final = "org.apache.kafka.connect.transforms."
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
LIST, BOOLEAN, INT = ConfigType.LIST, ConfigType.BOOLEAN, ConfigType.INT
# What is wrong with a parsed value (None when it is missing); None when nothing is.
Check = Callable[[Any], str | None]
# What is wrong with parsed values taken together, by key; they are named without prefix.
Together = Callable[[Mapping[str, Any]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Setting:
    """A key with its check."""

    key: ConfigKey
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class TransformClass:
    """A transformation or predicate.

    Attributes:
        class_name: Its full name.
        settings: Its keys, in their order.
        is_predicate: Which of both it is.
        version: Its version where that isn't Kafka's.
        together: What may be wrong with its values taken together.
    """

    class_name: str
    settings: tuple[Setting, ...] = ()
    is_predicate: bool = False
    version: str = ""
    together: Together | None = None

    @property
    def keys(self) -> tuple[ConfigKey, ...]:
        """Definitions of its keys."""
        return tuple(each.key for each in self.settings)


def setting(
    name: str,
    documentation: str,
    kind: ConfigType = ConfigType.STRING,
    default: str | None = None,
    *,
    importance: Importance = MEDIUM,
    required: bool = False,
    check: Check | None = None,
) -> Setting:
    """A key of a transformation or predicate."""
    key = ConfigKey(name, kind, default, required=required, importance=importance, documentation=documentation)
    return Setting(key, check)


_key: Final = setting


def _some(name: str) -> Check:
    def check(value: Any) -> str | None:
        if value is not None and not value:
            return f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        return distinct(value)

    distinct = _distinct(name)
    return check


def _distinct(name: str) -> Check:
    """Names of a list, which may be empty: each is given once, and none is empty."""

    def check(value: Any) -> str | None:
        if value is None:
            return f"Configuration '{name}' values must not be null."
        if len(set(value)) != len(value):
            return f"Configuration '{name}' values must not be duplicated."
        return f"Configuration '{name}' values must not be empty." if "" in value else None

    return check


def _listed(name: str) -> Check:
    return lambda value: None if value else invalid(name, value, "Empty list")


def _given(name: str) -> Check:
    return lambda value: invalid(name, None, "entry must be non null") if value is None else None


def _not_empty(name: str) -> Check:
    return lambda value: invalid(name, value, "String must be non-empty") if value == "" else None


def _one_of(name: str, *allowed: str, ignore_case: bool = False) -> Check:
    def check(value: Any) -> str | None:
        found = value.upper() if ignore_case and value is not None else value
        if found in allowed:
            return None
        case = " (case insensitive)" if ignore_case else ""
        return invalid(name, value, f"String must be one of{case}: {', '.join(allowed)}")

    return check


def _regex(name: str) -> Check:
    def check(value: Any) -> str | None:
        if value is None:
            return invalid(name, None, "Invalid regex: there is none")
        try:
            compile_java(value)
        except RegexError as error:
            return invalid(name, value, f"Invalid regex: {error}")
        return None

    return check


_CAST_TARGETS: Final = ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING")
_TYPE_NAMES: Final = frozenset({*_CAST_TARGETS, "BYTES", "ARRAY", "MAP", "STRUCT"})
_WHOLE: Final = (
    "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"
)


def _cast_spec(value: Any) -> str | None:
    if not value:
        return "Must specify at least one field to cast."
    whole = 0
    for item in value:
        parts = item.split(":")
        if len(parts) > 2:
            return invalid("renames", value, f"Invalid rename mapping: {item}")
        target = parts[-1].strip().upper()
        if target not in _TYPE_NAMES:
            missing = f"java.lang.IllegalArgumentException: No enum constant {_SCHEMA_TYPE}.{target}"
            return invalid(f"Invalid type found in casting spec: {parts[-1].strip()}", missing)
        if target not in _CAST_TARGETS:
            supported = f"supported types are [{', '.join(_CAST_TARGETS)}]"
            return f"Cast transformation does not support casting to {target}; {supported}"
        whole += len(parts) == 1
    return _WHOLE if whole and len(value) > 1 else None


_SCHEMA_TYPE: Final = "org.apache.kafka.connect.data.Schema.Type"


def _renames(value: Any) -> str | None:
    for item in value or ():
        parts = item.split(":")
        if len(parts) != 2 or not parts[1]:
            return invalid("renames", value, f"Invalid rename mapping: {item}")
    return None


_REPLACE_NULL: Final = _key(
    "replace.null.with.default", "Whether a field that is null is read as its default.", BOOLEAN, "true"
)
SYNTAX_VERSION: Final = _key(
    "field.syntax.version",
    "V1 takes the text as a name, V2 as a path to a nested field.",
    default="V1",
    importance=HIGH,
    check=_one_of("field.syntax.version", "V1", "V2", ignore_case=True),
)
_ON_SIDES: Final[Mapping[str, tuple[Setting, ...]]] = {
    "Cast": (
        _key("spec", "Fields and the types to cast them to, such as a:int8, or one type for the whole.", LIST,
             importance=HIGH, required=True, check=_cast_spec),
        _REPLACE_NULL,
    ),
    "ExtractField": (_key("field", "Field to extract.", required=True), _REPLACE_NULL, SYNTAX_VERSION),
    "Flatten": (_key("delimiter", "What stands between the names of nested fields.", default="."),),
    "HeaderFrom": (
        _key("fields", "Fields to copy or move.", LIST, importance=HIGH, required=True, check=_listed("fields")),
        _key("headers", "Headers that get them, in the same order.", LIST, importance=HIGH, required=True,
             check=_listed("headers")),
        _key("operation", "move or copy.", importance=HIGH, required=True, check=_one_of("operation", "move", "copy")),
        _REPLACE_NULL,
    ),
    "HoistField": (_key("field", "Name of the only field of the new whole.", required=True),),
    "InsertField": (
        _key("topic.field", "Field for the topic; a suffix of ! makes it required, ? optional."),
        _key("partition.field", "Field for the partition."),
        _key("offset.field", "Field for the offset; sinks only."),
        _key("timestamp.field", "Field for the time."),
        _key("static.field", "Field for a text of your own."),
        _key("static.value", "That text."),
        _REPLACE_NULL,
    ),
    "MaskField": (
        _key("fields", "Fields to mask.", LIST, importance=HIGH, required=True, check=_some("fields")),
        _key("replacement", "Number or text to put there; the neutral value of the type when unset.", importance=LOW,
             check=_not_empty("replacement")),
        _REPLACE_NULL,
    ),
    "ReplaceField": (
        _key("exclude", "Fields to leave out; they win over those to keep.", LIST, "", check=_distinct("exclude")),
        _key("include", "Fields to keep; all when empty.", LIST, "", check=_distinct("include")),
        _key("renames", "Other names for fields, such as old:new.", LIST, "", check=_renames),
        _REPLACE_NULL,
    ),
    "SetSchemaMetadata": (
        _key("schema.name", "Name of the schema.", importance=HIGH),
        _key("schema.version", "Version of the schema.", INT, importance=HIGH),
        _REPLACE_NULL,
    ),
    "TimestampConverter": (
        _key("field", "Field to convert; the whole when empty.", default="", importance=HIGH),
        _key("target.type", "string, unix, Date, Time or Timestamp.", importance=HIGH, required=True,
             check=_one_of("target.type", "string", "unix", "Date", "Time", "Timestamp")),
        _key("format", "Pattern of texts, as of Java's SimpleDateFormat.", default=""),
        _key("unix.precision", "Unit of numbers.", default="milliseconds", importance=LOW,
             check=_one_of("unix.precision", "nanoseconds", "microseconds", "milliseconds", "seconds")),
        _REPLACE_NULL,
    ),
}  # fmt: skip
_PLAIN: Final[Mapping[str, tuple[Setting, ...]]] = {
    "DropHeaders": (
        _key("headers", "Headers to remove.", LIST, importance=HIGH, required=True, check=_some("headers")),
    ),
    "Filter": (),
    "InsertHeader": (
        _key("header", "Name of the header.", importance=HIGH, required=True, check=_given("header")),
        _key("value.literal", "Its value as a text, from which its type is inferred.", importance=HIGH, required=True,
             check=_given("value.literal")),
    ),
    "RegexRouter": (
        _key("regex", "Regular expression that the whole topic must match.", importance=HIGH, required=True,
             check=_regex("regex")),
        _key("replacement", "What the match becomes; $1 is its first group.", importance=HIGH, required=True),
    ),
    "TimestampRouter": (
        _key("topic.format", "The new topic, with ${topic} and ${timestamp}.", default="${topic}-${timestamp}",
             importance=HIGH),
        _key("timestamp.format", "Pattern of the time, as of Java's SimpleDateFormat.", default="yyyyMMdd",
             importance=HIGH),
    ),
    "ValueToKey": (
        _key("fields", "Fields of the value that make the key.", LIST, importance=HIGH, required=True,
             check=_some("fields")),
        _REPLACE_NULL,
    ),
}  # fmt: skip
_PREDICATES: Final[Mapping[str, tuple[Setting, ...]]] = {
    "HasHeaderKey": (_key("name", "Name of the header.", required=True, check=_not_empty("name")),),
    "RecordIsTombstone": (),
    "TopicNameMatches": (
        _key("pattern", "Regular expression that the whole topic must match.", required=True, check=_regex("pattern")),
    ),
}


def _classes() -> tuple[TransformClass, ...]:
    sides = [
        TransformClass(f"{PACKAGE}{name}${side}", settings)
        for name, settings in _ON_SIDES.items()
        for side in ("Key", "Value")
    ]
    plain = [TransformClass(f"{PACKAGE}{name}", settings) for name, settings in _PLAIN.items()]
    predicates = [
        TransformClass(f"{PACKAGE}predicates.{name}", settings, is_predicate=True)
        for name, settings in _PREDICATES.items()
    ]
    return (*sorted((*sides, *plain), key=lambda each: each.class_name), *predicates)


CLASSES: Final = _classes()
# Classes that are nested answer to their full name only.
_BY_NAME: Final[Mapping[str, TransformClass]] = {
    name: each
    for each in CLASSES
    for name in (each.class_name, *(() if "$" in each.class_name else (each.class_name.rpartition(".")[2],)))
}
ABSTRACT: Final = frozenset(PACKAGE + name for name in _ON_SIDES)


def find(name: str) -> TransformClass | None:
    """A transformation or predicate by its full or simple name; None when there is none such."""
    return _BY_NAME.get(name)


def class_names(*, predicates: bool) -> tuple[str, ...]:
    """Class names to offer."""
    return tuple(each.class_name for each in CLASSES if each.is_predicate == predicates)


class More(Protocol):
    """Transformations beyond Kafka Connect's."""

    @property
    def names(self) -> tuple[str, ...]:
        """Class names to offer."""

    def find(self, name: str) -> TransformClass | None:
        """A transformation by one of its names; None when there is none such."""


def check(report: Report, known: Callable[[str], bool], version: str, more: More) -> None:
    """Checks the transformations and predicates of a connector, and shows their keys.

    Args:
        report: Takes keys and errors; `transforms` and `predicates` have been checked.
        known: Whether a name is that of another plugin, which is none of these.
        version: Version of all of them.
        more: Transformations that aren't Kafka Connect's.
    """
    for what, predicates in (("transforms", False), ("predicates", True)):
        aliases = report.texts(what)
        if len(set(aliases)) < len(aliases):
            report.add(what, invalid(what, aliases, "Duplicate alias provided."))
        for alias in dict.fromkeys(aliases):
            _Alias(report, what, alias, predicates, known, version, more).check()


@dataclass(frozen=True, slots=True)
class _Alias:
    """One alias under check."""

    report: Report
    what: str
    alias: str
    predicate: bool
    known: Callable[[str], bool]
    version: str
    more: More

    def check(self) -> None:
        found = self._type()
        if found is None or not self._version_is_there(found):
            return
        negate = [
            _key("negate", "Whether it is for the records that the predicate does not hold for.", BOOLEAN, "false"),
            _key("predicate", "Alias of the predicate that says which records it is for."),
        ]
        settings = [*found.settings, *(() if self.predicate else negate)]
        settings.sort(key=lambda each: (not each.key.required, each.key.importance, each.key.name))
        for place, each in enumerate(settings, 2):
            self._show(each.key, place)
            if each.check is not None:
                problem = each.check(self.report.value(f"{self.prefix}{each.key.name}"))
                if problem:
                    self.report.add(f"{self.prefix}{each.key.name}", problem)
        if found.together is not None:
            values = {each.key.name: self.report.value(f"{self.prefix}{each.key.name}") for each in found.settings}
            for name, problem in found.together(values).items():
                self.report.add(f"{self.prefix}{name}", problem)
        config = self.report.config
        if not self.predicate and f"{self.prefix}negate" in config and f"{self.prefix}predicate" not in config:
            self.report.add(
                f"{self.prefix}type",
                f"Config '{self.prefix}negate' was provided but there is no config '{self.prefix}predicate' defining a "
                "predicate to be negated.",
            )

    @property
    def prefix(self) -> str:
        return f"{self.what}.{self.alias}."

    def _show(self, key: ConfigKey, place: int, **changes: Any) -> None:
        group = f"{self.what.capitalize()}: {self.alias}"
        changes = {"display_name": key.name, **changes}
        shown = dataclasses.replace(key, name=self.prefix + key.name, group=group, order_in_group=place, **changes)
        self.report.check(shown)

    def _type(self) -> TransformClass | None:
        """Shows type and version; None when there is no usable class."""
        kind = "Predicate" if self.predicate else "Transformation"
        name = (self.report.config.get(f"{self.prefix}type") or "").strip()
        found = find(name) or self.more.find(name)
        usable = found if found is not None and found.is_predicate == self.predicate else None
        offered = (*class_names(predicates=self.predicate), *(() if self.predicate else self.more.names))
        key = ConfigKey("type", ConfigType.CLASS, required=True, importance=HIGH, documentation=f"Class of the {kind}.")
        shown = {"width": Width.LONG, "recommended_values": offered}
        self._show(key, 0, display_name=f"{kind} type for {self.alias}", **shown)
        version = (usable.version or self.version) if usable else None
        key = ConfigKey("plugin.version", default_value=version, importance=HIGH, documentation="Version of the class.")
        shown = {"width": Width.LONG, "recommended_values": (version,) if version else ()}
        self._show(key, 1, display_name=f"{kind} version for {self.alias}", **shown)
        if usable is not None:
            self.report.put(f"{self.prefix}type", usable.class_name)
            return usable
        self._without_class(name, found is not None or self.known(name), kind)
        return None

    def _without_class(self, name: str, is_other: bool, kind: str) -> None:
        type_key = f"{self.prefix}type"
        if type_key not in self.report.config or self.report.config[type_key] is None:
            return
        if name in ABSTRACT and not self.predicate:
            self.report.add(
                type_key,
                f"This class is abstract and cannot be created. Did you mean {name}$Key, {name}$Value?",
            )
        elif is_other:
            self.report.add(type_key, f"Class class {name} does not implement the {kind} interface")
        else:
            self.report.put(type_key, None)
            self.report.add(type_key, invalid(type_key, name, f"Class {name} could not be found."))

    def _version_is_there(self, found: TransformClass) -> bool:
        text = self.report.config.get(f"{self.prefix}plugin.version")
        wanted = VersionRange.parse(text) if text is not None else None
        version = found.version or self.version
        if wanted is None or not version or wanted.holds(version):
            return True
        problem = not_found(found.class_name, wanted, version)
        self.report.add(f"{self.prefix}type", problem)
        self.report.add(f"{self.prefix}plugin.version", problem)
        return False
