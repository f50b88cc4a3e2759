"""The spool directory source: files are the work, parts of large ones are shared out, finished ones taken away."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.errors import ConfigError
from wherry.sdk import Batch, Config, Mark, Offsets, Plan, Source, Split, Work, key
from wherry_spooldir.files import SpoolFile, find, move, report_error, require_directory
from wherry_spooldir.formats import BadFileError, Format, compression_of, format_of
from wherry_spooldir.readers import TYPES, Columns, CsvDialect, csv_columns, read, read_csv, read_json_lines
from wherry_spooldir.splits import Range, ranges

FILE, START = "file", "start"
ROWS, STATE, SIZE, MODIFIED = "rows", "state", "size", "modified"
OPEN, DONE, FAILED, FINISHED = "open", "done", "failed", "finished"
FILES_PER_PLAN_MAX = 1_000
PREPARED_MAX = 10_000


class SpoolDirConfig(Config):
    """Keys of this connector, with those of the well-known spool directory connector as other spellings."""

    topic: str = key(doc="Topic to write to.", importance="high", non_empty=True)
    input_path: str = key(doc="Directory to read files from.", importance="high", group="Files", non_empty=True)
    finished_path: str | None = key(
        default=None,
        doc="Directory that finished files are moved to; needed for cleanup.policy=move.",
        importance="high",
        group="Files",
    )
    error_path: str = key(
        doc="Directory that bad files are moved to, each with a report beside it.",
        importance="high",
        group="Files",
        non_empty=True,
    )
    input_file_pattern: str = key(
        default=".*", doc="Regular expression that a file's whole name must match.", group="Files"
    )
    input_path_walk_recursively: bool = key(default=False, doc="Also read directories below.", group="Files")
    file_minimum_age_ms: int = key(
        default=0, type="long", doc="Leave files alone that were changed more recently.", min=0, group="Files"
    )
    empty_poll_wait_ms: int = key(
        default=500, type="long", doc="Time between looks at the directory.", min=10, importance="low", group="Files"
    )
    cleanup_policy: str = key(
        default="move",
        doc="What happens to a finished file: move it, delete it, or leave it and remember it (none).",
        one_of=("move", "delete", "none"),
        ignore_case=True,
        group="Files",
    )
    halt_on_error: bool = key(
        default=False,
        doc="true: a bad file fails the task instead of being moved to error.path.",
        importance="high",
        group="Files",
    )
    format: str = key(
        default="auto",
        doc="Format of the files; auto goes by their names.",
        one_of=("auto", *(str(kind) for kind in Format)),
        group="Format",
    )
    split_bytes: int = key(
        default=32 << 20,
        type="long",
        doc="Size of the parts that a large file is read in, at the same time.",
        min=1 << 10,
        group="Format",
    )
    ordered: bool = key(default=False, doc="true: the parts of a file are read one after another.", group="Format")
    key_field: str | None = key(default=None, doc="Field of the value that becomes the key.", group="Format")
    csv_delimiter: str = key(
        default=",", doc="Character between fields, or its number.", aliases=("csv.separator.char",), group="CSV"
    )
    csv_quote: str = key(
        default='"',
        doc="Character around fields, or its number; empty for none.",
        aliases=("csv.quote.char",),
        group="CSV",
    )
    csv_escape: str = key(
        default="",
        doc="Character before a quote that is one, or its number; empty: quotes are doubled.",
        aliases=("csv.escape.char",),
        group="CSV",
    )
    csv_header: bool = key(
        default=True, doc="Whether the first line names the columns.", aliases=("csv.first.row.as.header",), group="CSV"
    )
    csv_types: list[str] = key(
        default="", doc=f"Types of columns as name:type, of {', '.join(TYPES)}; others are guessed.", group="CSV"
    )
    csv_null: str = key(
        default="", doc="Text that stands for null.", aliases=("csv.null.field.indicator",), group="CSV"
    )
    csv_skip_lines: int = key(
        default=0, doc="Lines before the header.", min=0, aliases=("csv.skip.lines",), group="CSV"
    )
    csv_encoding: str = key(default="utf8", doc="Encoding of the text.", aliases=("csv.file.charset",), group="CSV")


class SpoolDirSource(Source[SpoolDirConfig]):
    """Reads the files of a directory, large ones in several parts at once, and takes finished ones away."""

    class_name = "wherry.spooldir.SpoolDirSource"
    aliases = ("SpoolDirSource", "SpoolDir")
    splits = True
    kind: ClassVar[str | None] = None
    """Format of a class for one format only."""

    @classmethod
    def validate(cls, config: SpoolDirConfig, connect: bool) -> Mapping[str, str]:
        """Directories must be there and writable, patterns and types readable."""
        found = {
            "input.path": require_directory(
                Path(config.input_path), "input.path", writable=config.cleanup_policy != "none"
            ),
            "csv.types": _types_problem(config.csv_types),
            "input.file.pattern": _pattern_problem(config.input_file_pattern),
        }
        if config.cleanup_policy.lower() == "move" and not config.finished_path:
            found["finished.path"] = "cleanup.policy=move needs a directory for finished files."
        for name, path in (("finished.path", config.finished_path), ("error.path", config.error_path)):
            if path and Path(path).resolve() == Path(config.input_path).resolve():
                found[name] = f"{name} must be another directory than input.path."
        return {name: problem for name, problem in found.items() if problem}

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """One split for each part of each file that isn't read yet; files without such parts are taken away."""
        known = _by_file(offsets)
        listing = find(
            Path(self.config.input_path),
            self.config.input_file_pattern,
            recursive=self.config.input_path_walk_recursively,
            age_ms_min=self.config.file_minimum_age_ms,
            now_ms=time.time_ns() // 1_000_000,
        )
        self._tell_unseen(listing.unseen)
        splits: list[Split] = []
        reached: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        retired: list[Mapping[str, Any]] = []
        kept: set[str] = set()
        looked_at = 0
        for file in listing.files:
            states = known.get(file.name, {})
            # Beyond so many that have something to do the others wait for a later plan, and stay what they are.
            if _is(states.get(None), file, FINISHED) or looked_at == FILES_PER_PLAN_MAX:
                kept.add(file.name)
                continue
            looked_at += 1
            parts = self._open_parts(file, states)
            if parts:
                splits += parts
                kept.add(file.name)
            elif finished := self._finish(file):
                reached.append(finished)
                kept.add(file.name)
                retired += [{FILE: file.name, START: start} for start in states if start is not None]
        kept.update(name for name in known if listing.may_hold(name))
        retired += [_partition(name, start) for name, states in known.items() if name not in kept for start in states]
        return Plan(splits=splits, replan_after_ms=self.config.empty_poll_wait_ms, reached=reached, retired=retired)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch | Mark]:
        """Reads a part from the stored row on."""
        data = work.data
        file = SpoolFile(Path(data["path"]), data["name"], data[SIZE], data[MODIFIED])
        partition = {FILE: file.name, START: data[START]}
        stored = offsets.get(partition) or {}
        skip = int(stored.get(ROWS, 0)) if _same(stored, file) else 0
        row = 0
        try:
            for values in self._values(file.path, data):
                if self.stopping:
                    return
                row += len(values)
                if row <= skip:
                    continue
                fresh = values.slice(max(0, len(values) - (row - skip)))
                mark = Mark(len(fresh), partition, _offset(file, row, OPEN))
                yield Batch(value=fresh, key=self._key(fresh), topic=self.config.topic, marks=[mark])
        except FileNotFoundError:
            self.log.warning(f"{file.path} was taken away while it was being read")
        except BadFileError as error:
            if self.config.halt_on_error:
                raise ConfigError(f"{file.path}: {error}", key="halt.on.error") from None
            self.log.error(f"{file.path} is bad and goes to {self.config.error_path}: {error}")
            yield Mark(0, partition, _offset(file, row, FAILED) | {"error": str(error)})
            return
        if not self.stopping:
            yield Mark(0, partition, _offset(file, row, DONE))

    def _tell_unseen(self, unseen: Sequence[str]) -> None:
        """Says once what can't be looked at, until that changes."""
        if unseen and unseen != self._unseen:
            more = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
            self.log.warning(f"{self.config.input_path}/{unseen[0]}{more} can't be looked at; what is there is left")
        self._unseen = tuple(unseen)

    def _open_parts(self, file: SpoolFile, states: Mapping[int | None, Mapping[str, Any]]) -> list[Split]:
        """Parts that are still to be read; none when all are, or when the file is bad."""
        if failed := [state for state in states.values() if _is(state, file, FAILED)]:
            self._bad[_identity(file)] = str(failed[0].get("error", "it could not be read"))
            return []
        try:
            prepared = self._prepare(file)
        except FileNotFoundError:
            return []
        except BadFileError as error:
            self._bad[_identity(file)] = str(error)
            return []
        return [
            Split(
                id=f"{file.name}@{part[START]}#{file.modified_ms}",
                data=part,
                order_group=file.name if self.config.ordered else "",
                partitions=[{FILE: file.name, START: part[START]}],
                bytes_estimate=part["end"] - part[START],
            )
            for part in prepared
            if not _is(states.get(part[START]), file, DONE)
        ]

    def _prepare(self, file: SpoolFile) -> list[dict[str, Any]]:
        """Cuts a file once and remembers how; a file that changes is another."""
        identity = _identity(file)
        if identity not in self._prepared:
            if len(self._prepared) >= PREPARED_MAX:
                self._prepared.clear()
            kind = format_of(file.path, self.kind or self.config.format)
            dialect = self._dialect()
            columns = None
            if kind is Format.CSV:
                columns = asdict(csv_columns(file.path, dialect, _types(self.config.csv_types)))
            quote = (dialect.quote or "") if dialect.splittable else None
            cut = ranges(file.path, kind, split_bytes=self.config.split_bytes, quote=quote)
            self._prepared[identity] = [
                {
                    "path": str(file.path),
                    "name": file.name,
                    SIZE: file.size_bytes,
                    MODIFIED: file.modified_ms,
                    "format": str(kind),
                    START: part.start,
                    "end": part.end,
                    "columns": columns,
                    "first": i == 0,
                }
                for i, part in enumerate(cut)
            ]
        return self._prepared[identity]

    def _finish(self, file: SpoolFile) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """Takes a file away; returns what to remember of one that stays."""
        try:
            if problem := self._bad.pop(_identity(file), None):
                report_error(file, Path(self.config.error_path), problem)
            elif self.config.cleanup_policy.lower() == "move":
                move(file, Path(self.config.finished_path or ""))
            elif self.config.cleanup_policy.lower() == "delete":
                os.unlink(file.path)  # noqa: PTH108
            else:
                return {FILE: file.name}, _offset(file, 0, FINISHED)
        except FileNotFoundError:
            return None  # somebody else was quicker
        except OSError as error:
            raise ConfigError(f"{file.path} can't be taken away: {error.strerror}", key="finished.path") from None
        return None

    def _values(self, path: Path, data: Mapping[str, Any]) -> Iterator[pa.Array]:
        part, kind = Range(data[START], data["end"]), Format(data["format"])
        if kind is Format.JSON:
            yield from read_json_lines(path, part)
            return
        if kind is Format.CSV:
            columns = Columns(
                tuple(data["columns"]["names"]), tuple(data["columns"]["types"]), data["columns"]["data_start"]
            )
            compressed = compression_of(path) is not None
            batches = read_csv(path, part, self._dialect(), columns, first=data["first"], compressed=compressed)
        else:
            batches = read(path, kind, part)
        for batch in batches:
            if batch.num_rows:
                yield pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))

    def _key(self, values: pa.Array) -> pa.Array | None:
        name = self.config.key_field
        if not name or not pa.types.is_struct(values.type):
            return None
        if values.type.get_field_index(name) < 0:
            raise BadFileError(f"there is no field {name}, which is to be the key")
        return pc.struct_field(values, name)

    def _dialect(self) -> CsvDialect:
        config = self.config
        return CsvDialect(
            delimiter=_character(config.csv_delimiter) or ",",
            quote=_character(config.csv_quote),
            escape=_character(config.csv_escape),
            header=config.csv_header,
            encoding=config.csv_encoding,
            null_texts=(config.csv_null,),
            skip_lines=config.csv_skip_lines,
        )

    def __init__(self, config: SpoolDirConfig, context: Any) -> None:
        """A source that remembers how it cut files, and why some are bad."""
        super().__init__(config, context)
        self._prepared: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        self._bad: dict[tuple[str, int, int], str] = {}
        self._unseen: tuple[str, ...] = ()


class SpoolDirCsvSource(SpoolDirSource):
    """The same for CSV alone, under the well-known class name."""

    class_name = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector"
    aliases = ("SpoolDirCsvSource", "SpoolDirCsvSourceConnector")
    kind = "csv"


def _by_file(offsets: Offsets) -> dict[str, dict[int | None, Mapping[str, Any]]]:
    """Stored offsets by file and start; start None is the file as a whole."""
    found: dict[str, dict[int | None, Mapping[str, Any]]] = {}
    for partition, offset in offsets:
        if FILE in partition:
            found.setdefault(partition[FILE], {})[partition.get(START)] = offset
    return found


def _partition(name: str, start: int | None) -> Mapping[str, Any]:
    return {FILE: name} if start is None else {FILE: name, START: start}


def _offset(file: SpoolFile, rows: int, state: str) -> dict[str, Any]:
    return {ROWS: rows, STATE: state, SIZE: file.size_bytes, MODIFIED: file.modified_ms}


def _same(offset: Mapping[str, Any], file: SpoolFile) -> bool:
    return bool(offset.get(SIZE) == file.size_bytes and offset.get(MODIFIED) == file.modified_ms)


def _is(offset: Mapping[str, Any] | None, file: SpoolFile, state: str) -> bool:
    return offset is not None and _same(offset, file) and offset.get(STATE) == state


def _identity(file: SpoolFile) -> tuple[str, int, int]:
    return file.name, file.size_bytes, file.modified_ms


def _character(text: str) -> str | None:
    """A character, given as itself or by its number; none for an empty text or 0."""
    if len(text) > 1 and text.isdigit():
        return chr(int(text)) if int(text) else None
    return {"\\t": "\t", "0": None, "": None}.get(text, text)


def _types(entries: Sequence[str]) -> dict[str, str]:
    return {name.strip(): kind.strip() for name, _, kind in (entry.rpartition(":") for entry in entries if entry)}


def _types_problem(entries: Sequence[str]) -> str | None:
    wrong = [entry for entry in entries if entry and entry.rpartition(":")[2].strip() not in TYPES]
    return f"{wrong[0]} isn't name:type with a type of {', '.join(TYPES)}." if wrong else None


def _pattern_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{pattern} isn't a regular expression: {error}."
    return None
