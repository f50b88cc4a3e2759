r"""Java's `.properties` files, read exactly as `java.util.Properties` reads them from a stream of bytes.

Decides how lines, separators, escapes and continuations are understood; knows nothing of Kafka's keys. The bytes are
ISO 8859-1, as Java has it: a letter beyond that is written `\uXXXX`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wherry.contract.errors import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_UNICODE_DIGITS = 4


def load(path: Path) -> dict[str, str]:
    """Read a file.

    Raises:
        ConfigError: The file cannot be read, or holds a broken escape; the message names the file.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        return loads(content.decode("iso-8859-1"))
    except ConfigError as error:
        raise ConfigError(f"{path}, {error}") from None


def loads(text: str) -> dict[str, str]:
    """Read a text; of a key given twice the last value counts.

    Raises:
        ConfigError: A broken unicode escape; the message names the line.
    """
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            values[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ConfigError(f"line {number}: {error}") from None
    return values


def dumps(values: dict[str, str]) -> str:
    """Write values so that `loads` and Java read them back."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n" for key, value in values.items())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with its number: comments and blanks left out, continued lines joined.

    One pass with two flags, in the order Java's own reader checks them, since its corners (a comment sign or a blank
    line after a continuation) follow from that order.
    """
    line: list[str] = []
    number = start = 1
    skipping_blanks = True
    continued = False
    escaped = False  # an odd number of backslashes stands before this character
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        at_end = char in "\r\n"
        if char == "\r" and text[index : index + 1] == "\n":
            index += 1
        number += at_end
        if skipping_blanks:
            if char in _BLANK or (at_end and not continued):
                continue
            skipping_blanks = continued = False
            start = start if line else number - at_end
        if not line and char in "#!":
            while index < len(text) and text[index] not in "\r\n":
                index += 1
            skipping_blanks = True
        elif not at_end:
            line.append(char)
            escaped = char == "\\" and not escaped
        elif not line:
            skipping_blanks = True
        elif escaped:
            line.pop()
            skipping_blanks = continued = True
            escaped = False
        else:
            yield start, "".join(line)
            line.clear()
            skipping_blanks = True
    if line:
        if escaped:
            line.pop()
        yield start, "".join(line)


def _split(line: str) -> tuple[str, str]:
    """Cut a logical line at the first separator: blanks, with at most one `=` or `:` among them."""
    escaped = False
    key_end = len(line)
    for index, char in enumerate(line):
        if not escaped and (char in "=:" or char in _BLANK):
            key_end = index
            break
        escaped = char == "\\" and not escaped
    rest = line[key_end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:key_end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    chars: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char != "\\":
            chars.append(char)
        elif index < len(text) and text[index] == "u":
            digits = text[index + 1 : index + 1 + _UNICODE_DIGITS]
            if len(digits) < _UNICODE_DIGITS or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(f"\\u must be followed by four hexadecimal digits, not {digits!r}.")
            chars.append(chr(int(digits, 16)))
            index += 1 + _UNICODE_DIGITS
        elif index < len(text):
            chars.append(_ESCAPES.get(text[index], text[index]))
            index += 1
    joined = "".join(chars)
    # Java's text is UTF-16: two escapes may be the halves of one character.
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(text: str, *, is_key: bool) -> str:
    chars: list[str] = []
    for index, char in enumerate(text):
        if char in "\t\r\n\f":
            chars.append("\\" + {"\t": "t", "\r": "r", "\n": "n", "\f": "f"}[char])
        elif char in "\\=:#!" or (char == " " and (is_key or index == 0)):
            chars.append("\\" + char)
        elif " " <= char <= "~":
            chars.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            chars += [f"\\u{int.from_bytes(units[at : at + 2], 'big'):04X}" for at in range(0, len(units), 2)]
    return "".join(chars)
