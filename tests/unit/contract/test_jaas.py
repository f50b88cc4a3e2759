"""JAAS lines are read as Java reads them."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.jaas import parse


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ('a.b.M required username="u" password="p";', {"username": "u", "password": "p"}),
        ("a.b.M required x = 'p w' ;", {"x": "p w"}),
        (r'a.b.M required x="a\"b\\c;=";', {"x": r"a\"b\c;=".replace(r"\"", '"')}),
        ("a.b.M optional useKeyTab=true\n keyTab=/x.keytab /* c */;", {"useKeyTab": "true", "keyTab": "/x.keytab"}),
        ("a.b.M REQUIRED;", {}),
        ("a.b.M required x=\"\";", {"x": ""}),
    ],
)  # fmt: skip
def test_a_line_is_read(line: str, options: dict[str, str]) -> None:
    module = parse(line)
    assert (module.simple_name, dict(module.options)) == ("M", options)


def test_the_text_of_a_module_shows_no_secret() -> None:
    assert "hush" not in repr(parse('a.M required password="hush";'))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "ends in a semicolon"),
        ('a.M required username="u"', "ends in a semicolon"),
        ("a.M required; b.M required;", "one login module only"),
        ('a.M username="u";', "'username' after the login module where 'required' is expected"),
        ("a.M required username;", "no value for 'username'"),
        ("a.M required username=;", "no value for 'username'"),
        ('a.M required username="u;', "quote that is not closed"),
    ],
)
def test_what_is_no_login_module_says_what_is_wrong(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(line)
