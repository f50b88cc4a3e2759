"""Java's regular expressions: what is translated, what is refused, and replacements."""

from __future__ import annotations

import pytest

from wherry.contract.javaregex import RegexError, compile_java, expand_java

# Expression, texts that match as a whole, texts that don't: as OpenJDK 17 says.
MATCHES = (
    ("a|b", ["a", "b"], ["ab"]),
    ("(?<year>\\d{4})-\\k<year>", ["2020-2020"], ["2020-2021"]),
    ("\\Qa.b\\E.", ["a.bx"], ["axbx"]),
    ("\\Qa.b", ["a.b"], ["axb"]),
    ("[a-c[x-z]]+", ["abxz"], ["m"]),
    ("[a-z&&[^aeiou]]+", ["xyz"], ["xay"]),
    ("[a-z&&b-d]+", ["bcd"], ["ae"]),
    ("\\p{Alpha}+\\p{Digit}", ["ab1"], ["a\u00e91", "1"]),
    ("\\P{Upper}+", ["abc1"], ["aBc"]),
    ("[\\p{Lower}_]+", ["a_b"], ["A"]),
    ("\\p{L}+", ["\u00e9t\u00e9"], ["a1"]),
    ("\\w+\\W\\d\\D\\s\\S", ["ab-1x y"], ["\u00e9-1x y"]),
    ("\\d+", ["12"], ["\u0661"]),
    ("a\\.b", ["a.b"], ["axb"]),
    ("[]a]+", ["]a"], ["b"]),
    ("[^]a]+", ["b"], ["]"]),
    ("a++b", ["aab"], ["aa"]),
    ("(?>a|ab)c", ["ac"], ["abc"]),
    ("(?i)ABC", ["abc", "ABC"], ["abd"]),
    ("(?:x)(?=y)y(?!z)", ["xy"], ["xyz"]),
    ("(?<=a)b|ab", ["ab"], ["b"]),
    ("a{2,3}", ["aa", "aaa"], ["a"]),
    ("\\x41\\u0042\\0103\\x{44}", ["ABCD"], ["abcd"]),
    (".*", ["", "a b"], ["a\nb", "a\u2028b"]),
    ("(?s).*", ["a\nb"], []),
    ("a\\hb\\Rc", ["a\tb\r\nc"], ["a\nb\nc"]),
    ("[\\[\\]]+", ["[]"], ["a"]),
    ("^a$", ["a"], ["ba"]),
    ("a-b_c~d", ["a-b_c~d"], []),
)


@pytest.mark.parametrize(("pattern", "matching", "other"), MATCHES, ids=[each[0] for each in MATCHES])
def test_an_expression_matches_as_in_java(pattern: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_java(pattern)
    assert [text for text in matching if not compiled.fullmatch(text)] == []
    assert [text for text in other if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "Unclosed group near index 1\n("),
        ("x(", "Unclosed group near index 2\nx("),
        ("[a", "Unclosed character class near index 1\n[a"),
        ("*", "Dangling meta character '*' near index 0\n*\n^"),
        ("\\y", "Illegal/unsupported escape sequence near index 1\n\\y"),
    ],
)
def test_what_java_refuses_is_refused_in_its_words(pattern: str, words: str) -> None:
    with pytest.raises(RegexError) as refused:
        compile_java(pattern)
    assert str(refused.value) == words


@pytest.mark.parametrize("pattern", ["\\X", "\\G", "(?d)a", "[a[^b]]", "\\p{IsGreek}", "\\N{DIGIT ONE}"])
def test_what_has_no_counterpart_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(RegexError, match="has no counterpart here"):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expanded"),
    [
        ("(a)(b)?", "$1-$2", "a", "a-"),
        ("(a)", "$11", "a", "a1"),
        ("a", "\\$\\\\", "a", "$\\"),
        ("(?<n>a)", "${n}${n}", "a", "aa"),
        ("a", "$0$0", "a", "aa"),
    ],
)
def test_a_replacement_stands_for_groups(pattern: str, replacement: str, text: str, expanded: str) -> None:
    match = compile_java(pattern).search(text)
    assert match is not None
    assert expand_java(replacement, match) == expanded


@pytest.mark.parametrize(
    ("replacement", "words"),
    [
        ("$", "Illegal group reference: group index is missing"),
        ("\\", "character to be escaped is missing"),
        ("$x", "Illegal group reference"),
        ("${x}", "No group with name {x}"),
        ("$2", "No group 2"),
    ],
)
def test_a_replacement_that_names_no_group_is_an_error_in_javas_words(replacement: str, words: str) -> None:
    match = compile_java("(a)").search("a")
    assert match is not None
    with pytest.raises((RegexError, IndexError)) as refused:
        expand_java(replacement, match)
    assert str(refused.value) == words
