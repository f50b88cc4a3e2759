r"""Java's regular expressions on top of Python's: translation, and replacements with `$1`.

Most of both languages is the same. What Java writes otherwise is rewritten: names of groups, `\Q…\E`, POSIX classes,
unions and intersections in brackets, `\h`, `\R`, `\z`. What has no counterpart is refused in a sentence and never
guessed at. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

COMPILED_MAX: Final = 256

# Contents of a bracket for each class; Java's are ASCII unless told otherwise.
_CLASSES: Final[Mapping[str, str]] = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t\\n\\x0b\\f\\r",
    "javaLowerCase": "a-z\\xb5\\xdf-\\xf6\\xf8-\\xff",
    "javaUpperCase": "A-Z\\xc0-\\xd6\\xd8-\\xde",
}
_LETTERS: Final[Mapping[str, str]] = {"L": "[^\\W\\d_]", "IsAlphabetic": "[^\\W\\d_]", "N": "\\d", "Nd": "\\d"}
_ESCAPES: Final[Mapping[str, str]] = {
    "h": "[ \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000]",
    "H": "[^ \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000]",
    "v": "[\\n\\x0b\\f\\r\\x85\\u2028\\u2029]",
    "V": "[^\\n\\x0b\\f\\r\\x85\\u2028\\u2029]",
    "R": "(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])",
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[a-zA-Z_0-9]",
    "W": "[^a-zA-Z_0-9]",
    "s": "[ \\t\\n\\x0b\\f\\r]",
    "S": "[^ \\t\\n\\x0b\\f\\r]",
    "z": "\\Z",
    "Z": "(?=\\n?\\Z)",
    "e": "\\x1b",
}
_UNSUPPORTED: Final = frozenset("XGN")
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")


class RegexError(ValueError):
    """An expression that Java refuses, or that can't be carried over; the text is one sentence."""


@lru_cache(COMPILED_MAX)
def compile_java(pattern: str) -> re.Pattern[str]:
    """Compiles a Java regular expression.

    Raises:
        RegexError: It is none, in Java's words where they are known, or it uses what has no counterpart.
    """
    translated, flags = _Translator(pattern).translate()
    try:
        return re.compile(translated, flags)
    except (re.error, OverflowError) as error:
        raise RegexError(_java_words(pattern, error)) from None


def expand_java(replacement: str, match: re.Match[str]) -> str:
    """Returns what a Java replacement stands for: `$1`, `${name}` and backslashes.

    Raises:
        IndexError: A group by number that the expression doesn't have.
        RegexError: Any other error, in Java's words.
    """
    parts: list[str] = []
    place, end = 0, len(replacement)
    while place < end:
        sign = replacement[place]
        place += 1
        if sign == "\\":
            if place == end:
                raise RegexError("character to be escaped is missing")
            parts.append(replacement[place])
            place += 1
        elif sign == "$":
            group, place = _group(replacement, place, match)
            parts.append(match[group] or "")
        else:
            parts.append(sign)
    return "".join(parts)


def _group(replacement: str, place: int, match: re.Match[str]) -> tuple[int | str, int]:
    if place == len(replacement):
        raise RegexError("Illegal group reference: group index is missing")
    if replacement[place] == "{":
        closing = replacement.find("}", place)
        name = replacement[place + 1 : closing if closing > 0 else len(replacement)]
        if closing < 0 or not _NAME.fullmatch(name):
            raise RegexError("named capturing group is missing trailing '}'")
        if name not in match.re.groupindex:
            raise RegexError(f"No group with name {{{name}}}")
        return name, closing + 1
    if not replacement[place].isdecimal() or not replacement[place].isascii():
        raise RegexError("Illegal group reference")
    number = int(replacement[place])
    if number > match.re.groups:
        raise IndexError(f"No group {number}")
    place += 1
    # More digits belong to the number as long as there is such a group.
    while place < len(replacement) and replacement[place] in "0123456789":
        longer = number * 10 + int(replacement[place])
        if longer > match.re.groups:
            break
        number, place = longer, place + 1
    return number, place


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._flags = re.RegexFlag(0)

    def translate(self) -> tuple[str, int]:
        """Returns Python's expression and flags."""
        parts: list[str] = []
        while self._place < len(self._pattern):
            sign = self._take()
            if sign == "\\":
                parts.append(self._escape(in_class=False))
            elif sign == "[":
                parts.append(self._bracket())
            elif sign == "(":
                parts.append(self._open())
            elif sign == "$":
                parts.append("$" if self._flags & re.MULTILINE else "(?=\\n?\\Z)")
            elif sign == ".":
                parts.append("." if self._flags & re.DOTALL else "[^\\n\\r\\x85\\u2028\\u2029]")
            else:
                parts.append(sign)
        return "".join(parts), int(self._flags)

    def _take(self) -> str:
        sign = self._pattern[self._place]
        self._place += 1
        return sign

    def _rest(self) -> str:
        return self._pattern[self._place :]

    def _open(self) -> str:
        rest = self._rest()
        if rest.startswith("?<") and rest[2:3] not in {"=", "!"}:
            self._place += 2
            return "(?P<"
        inline = re.match(r"\?([idmsuxU]+)\)", rest)
        if inline is None:
            if re.match(r"\?[idmsuxU]*[dU]", rest):
                raise self._foreign("the flags d and U")
            return "("
        self._place += inline.end()
        for flag in inline[1]:
            if flag in "dU":
                raise self._foreign(f"the flag {flag}")
            self._flags |= {"i": re.I, "m": re.M, "s": re.S, "u": re.RegexFlag(0), "x": re.X}[flag]
        return ""

    def _escape(self, *, in_class: bool) -> str:
        """Translates what follows a backslash; in brackets the answer is part of one."""
        if self._place == len(self._pattern):
            raise RegexError(f"Unexpected internal error near index {len(self._pattern)}\n{self._pattern}")
        sign = self._take()
        if sign == "Q":
            quoted, _, _ = self._rest().partition("\\E")
            self._place += len(quoted) + (2 if self._rest().startswith(quoted + "\\E") else 0)
            return re.escape(quoted)
        if sign in "pP":
            return self._property(negated=sign == "P", in_class=in_class)
        if sign == "k":
            found = re.match(r"<([a-zA-Z][a-zA-Z0-9]*)>", self._rest())
            if found is None:
                raise RegexError(f"\\k is not followed by '<' for named capturing group near index {self._place}")
            self._place += found.end()
            return f"(?P={found[1]})"
        if sign == "0":
            octal = re.match(r"[0-3]?[0-7]{1,2}", self._rest())
            if octal is None:
                raise RegexError(f"Illegal octal escape sequence near index {self._place}\n{self._pattern}")
            self._place += octal.end()
            return f"\\x{int(octal[0], 8):02x}"
        if sign == "x" and self._rest().startswith("{"):
            found = re.match(r"\{([0-9a-fA-F]+)\}", self._rest())
            if found is None:
                raise RegexError(f"Illegal hexadecimal escape sequence near index {self._place}\n{self._pattern}")
            self._place += found.end()
            return re.escape(chr(int(found[1], 16)))
        if sign == "c":
            return re.escape(chr(ord(self._take()) ^ 64))
        if sign in _UNSUPPORTED:
            raise self._foreign(f"\\{sign}")
        if sign in _ESCAPES:
            return self._class_escape(sign) if in_class else _ESCAPES[sign]
        if sign.isalpha() and sign not in "tnrfabBAux":
            raise RegexError(f"Illegal/unsupported escape sequence near index {self._place - 1}\n{self._pattern}")
        return f"\\{sign}" if sign.isalnum() else re.escape(sign)

    def _class_escape(self, sign: str) -> str:
        found = _ESCAPES[sign]
        if found.startswith("[^"):
            return {"D": "\\D", "W": "\\W", "S": "\\S"}.get(sign) or self._refuse(f"\\{sign} in brackets")
        return found[1:-1] if found.startswith("[") else found

    def _property(self, *, negated: bool, in_class: bool) -> str:
        found = re.match(r"\{(?:IsPosix)?([A-Za-z=_]+)\}|([A-Z])", self._rest())
        if found is None:
            raise RegexError(f"Unknown character property near index {self._place}\n{self._pattern}")
        self._place += found.end()
        name = found[1] or found[2]
        inside = _CLASSES.get(name)
        if inside is not None and not (negated and in_class):
            return inside if in_class else f"[{'^' if negated else ''}{inside}]"
        if name in _LETTERS and not in_class and not negated:
            return _LETTERS[name]
        raise self._foreign(f"\\{'P' if negated else 'p'}{{{name}}}")

    def _bracket(self) -> str:
        """Translates a bracket, in which brackets may be nested and cut with `&&`."""
        opening = self._place - 1
        negated = self._rest().startswith("^")
        self._place += negated
        parts: list[str] = []
        first = True
        while self._place < len(self._pattern):
            sign = self._take()
            if sign == "]" and not first:
                inside = "".join(parts)
                return f"[{'^' if negated else ''}{inside}]"
            first = False
            if sign == "\\":
                parts.append(self._escape(in_class=True))
            elif sign == "[":
                nested = self._bracket()
                if nested.startswith(("[^", "(")):
                    raise self._foreign("a negated bracket within a bracket")
                parts.append(nested[1:-1])
            elif sign == "&" and self._rest().startswith("&"):
                self._place += 1
                return self._intersection("".join(parts), negated=negated)
            else:
                parts.append(f"\\{sign}" if sign in "|~&]" else sign)
        raise RegexError(
            f"Unclosed character class near index {len(self._pattern) - 1}\n{self._pattern}" if opening >= 0 else ""
        )

    def _intersection(self, left: str, *, negated: bool) -> str:
        """`[left&&right]` as a look-ahead; right is what comes up to the closing bracket."""
        if negated or not left:
            raise self._foreign("&& in a negated bracket")
        if self._rest().startswith("["):
            self._place += 1
            right = self._bracket()
            if not self._rest().startswith("]"):
                raise self._foreign("more than one && in a bracket")
            self._place += 1
        else:
            right = self._bracket()
        if right.startswith("("):
            raise self._foreign("more than one && in a bracket")
        return f"(?:(?={right})[{left}])"

    def _refuse(self, what: str) -> str:
        raise self._foreign(what)

    def _foreign(self, what: str) -> RegexError:
        return RegexError(f"{what} of Java's regular expressions has no counterpart here: {self._pattern}")


def _java_words(pattern: str, error: Exception) -> str:
    """Says in Java's words what Python found, as far as they are known."""
    text = str(error)
    if "unterminated subpattern" in text:
        return f"Unclosed group near index {len(pattern)}\n{pattern}"
    if "unbalanced parenthesis" in text:
        place = getattr(error, "pos", 0) or 0
        return "Unmatched closing ')'" + (f" near index {place - 1}" if place else "") + f"\n{pattern}"
    if "nothing to repeat" in text or "multiple repeat" in text:
        place = getattr(error, "pos", 0) or 0
        sign = pattern[place] if place < len(pattern) else pattern[-1]
        pointer = f"\n{' ' * place}^" if place else "\n^"
        return f"Dangling meta character '{sign}' near index {place}\n{pattern}{pointer}"
    return f"{text}: {pattern}"
