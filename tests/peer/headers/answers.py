"""What the two say to the same questions: `unread` or `unwritten` with the words of a refusal, or `written`, base64.

`python -m tests.peer.headers.answers` records the table that the unit tests read.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from tests.peer.headers.questions import CONFIGS, fixed

from wherry.contract import headers, values
from wherry.contract.batch import HEADERS_TYPE
from wherry.contract.data import Float32, Instant, Int8, Int16, Int32, Typed
from wherry.contract.payload import from_payload
from wherry.contract.schema import from_form
from wherry.contract.schemaless import loads
from wherry.coordinator.dev.jars import CONNECT, class_path, ensure_jars
from wherry.coordinator.dev.java import find_java
from wherry.worker.convert.header_json import ordered
from wherry.worker.convert.headers import HeaderConverter, HeaderSide
from wherry.worker.convert.json_forms import regular
from wherry.worker.convert.registry import converters_of

SOURCE: Final = Path(__file__).with_name("Headers.java")
RECORDED: Final = Path(__file__).parents[2] / "cases/headers/answers.json"
TIMEOUT_S: Final = 120.0
Answer = dict[str, str | None]
_SINGLES: Final[Mapping[str, Any]] = {
    "Byte": lambda text: Int8(int(text)),
    "Short": lambda text: Int16(int(text)),
    "Integer": lambda text: Int32(int(text)),
    "Float": lambda text: Float32(float(text)),
    "Date": lambda text: Instant(int(text)),
    "BigDecimal": Decimal,
}
_FIELD: Final = pa.field("headers", HEADERS_TYPE)


def of_kafka_connect(questions: Sequence[Mapping[str, Any]], folder: Path) -> list[Answer]:
    """Asks the real classes."""
    java, jars = find_java().executable, class_path(ensure_jars(CONNECT))
    compile_it = [str(java.with_name("javac")), "-nowarn", "-d", str(folder), "-cp", jars, str(SOURCE)]
    subprocess.run(compile_it, check=True, capture_output=True, timeout=TIMEOUT_S)
    asked = "".join(f"{json.dumps(question)}\n" for question in questions)
    command = [str(java), "-XX:TieredStopAtLevel=1", "-Xss4m", "-cp", f"{folder}:{jars}", "Headers"]
    told = subprocess.run(command, input=asked, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return [json.loads(line) for line in told.stdout.splitlines()]


def of_wherry(questions: Iterable[Mapping[str, Any]]) -> list[Answer]:
    """Asks ours."""
    sides: dict[str, HeaderSide] = {}
    answers = []
    for question in questions:
        key = json.dumps(question["config"])
        sides[key] = sides.get(key) or side_of(question["config"])
        answers.append(_answer(sides[key], question))
    return answers


def side_of(config: Mapping[str, str]) -> HeaderSide:
    """Makes a header converter."""
    return converters_of({f"header.converter.{name}".rstrip("."): each for name, each in config.items()}, {}).headers


def converter_of(config: Mapping[str, str]) -> HeaderConverter:
    """Makes what reads and writes single headers."""
    return side_of(config).converter


def _answer(side: HeaderSide, question: Mapping[str, Any]) -> Answer:
    if "data" in question:
        data = None if question["data"] is None else base64.b64decode(question["data"])
        read = side.to_connect("t", pa.array([[("h", data)]], HEADERS_TYPE))
        if read.failures:
            return {"unread": str(read.failures[0].error)}
        return _written(read.runs[0].column)
    column = headers.append(None, [[headers.entry("h", _value(question))]])
    written = side.from_connect("t", _FIELD, column)
    return {"unwritten": str(written.failures[0].error)} if written.failures else _written(written.runs[0].column)


def _written(column: pa.Array) -> Answer:
    found = column[0].as_py()[0]["value"]
    return {"written": None if found is None else base64.b64encode(found).decode()}


def _value(question: Mapping[str, Any]) -> Typed:
    if "literal" in question:
        return values.parse(question["literal"])
    if "java" in question:
        return Typed(None, _SINGLES[question["java"]](question["text"]))
    form, payload = question["value"]["schema"], question["value"]["payload"]
    if form is None:
        return Typed(None, ordered(None, loads(json.dumps(payload))))
    schema = from_form(regular(form))
    return Typed(schema, ordered(schema, from_payload(schema, payload)))


def unlike(question: Mapping[str, Any], connect: Answer, wherry: Answer) -> bool:
    """Whether two answers differ by more than is wanted.

    A sink gets the text of what was read but can't be written. Where Kafka Connect's own code stumbles over a map
    without a schema, ours says what is wrong.
    """
    if connect == wherry:
        return False
    if "unwritten" not in connect:
        return True
    stumbles = "keySchema()" in (connect["unwritten"] or "") and "unwritten" in wherry
    return not stumbles and not ("data" in question and "written" in wherry)


def main() -> None:
    """Records what Kafka Connect's own classes say to the fixed questions."""
    with tempfile.TemporaryDirectory() as folder:
        questions = list(fixed())
        answers = of_kafka_connect(questions, Path(folder))
    names = {json.dumps(config): name for name, config in CONFIGS.items()}
    rows = [
        [names[json.dumps(question.pop("config"))], question, answer]
        for question, answer in zip(questions, answers, strict=True)
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    RECORDED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
