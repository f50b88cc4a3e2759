"""Names and passwords are those of the file that the JAAS entry names."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.rest import auth
from wherry.coordinator.rest.app import App
from wherry.coordinator.rest.auth import BasicAuth

CLASS = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


def basic(name: str, password: str, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


@pytest.fixture
def jaas_file(tmp_path: Path) -> Path:
    (tmp_path / "users").write_text("ann=secret\nbob=p:w = d\n")
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'Other {{ x.Y required a="b"; }};\nKafkaConnect {{\n  {MODULE} required\n  file="{tmp_path}/users";\n}};\n'
    )
    return path


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (basic("ann", "secret"), True),
        (basic("ann", "secret", "basic"), True),
        (basic("bob", "p:w = d"), True),
        (basic("ann", "wrong"), False),
        (basic("eve", ""), False),
        ("Basic " + base64.b64encode(b"ann").decode(), False),
        ("Basic !!", False),
        ("Bearer secret", False),
        ("", False),
        (None, False),
    ],
)
def test_who_gives_a_users_name_and_password_is_let_in(jaas_file: Path, header: str | None, allowed: bool) -> None:
    users = auth.configured([CLASS], {auth.JAAS_KEY: str(jaas_file)}, {})
    assert users is not None
    assert users.allows(header) is allowed


def test_javas_option_names_the_file_too(jaas_file: Path) -> None:
    users = auth.configured([CLASS], {}, {"KAFKA_OPTS": f'-Xmx1g "-Djava.security.auth.login.config={jaas_file}"'})
    assert users is not None
    assert users.allows(basic("ann", "secret"))


def test_without_the_extension_everybody_is_let_in() -> None:
    assert auth.configured([], {}, {}) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no entry KafkaConnect"),
        ("KafkaConnect { };", "is not: PropertyFileLoginModule required"),
        ('KafkaConnect { x.LdapLoginModule required file="f"; };', "names x.LdapLoginModule, which is Java code"),
        ("KafkaConnect { x.PropertyFileLoginModule required; };", 'has no file="…"'),
        ('KafkaConnect { x.PropertyFileLoginModule required file="/no/such"; };', "/no/such does not exist"),
    ],
)
def test_a_jaas_file_that_names_no_users_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        auth.configured([CLASS], {auth.JAAS_KEY: str(path)}, {})


def test_a_file_without_users_is_refused_for_it_would_let_in_nobody_or_everybody(jaas_file: Path) -> None:
    (jaas_file.parent / "users").write_text("# none\n")
    with pytest.raises(ConfigError, match="holds no names and passwords"):
        auth.configured([CLASS], {auth.JAAS_KEY: str(jaas_file)}, {})


def test_users_are_not_shown_in_a_log() -> None:
    assert "secret" not in repr(BasicAuth({"ann": "secret"}))


@pytest.fixture
def closed(herder) -> App:
    return App(herder, version="1", auth=BasicAuth({"ann": "secret"}))


def test_who_is_not_let_in_gets_the_real_workers_answer(closed, request_to) -> None:
    answer = request_to(closed, "GET", "/connectors")
    assert (answer.status, answer.body) == (401, b"User cannot access the resource.")
    assert answer.headers["content-type"] == "application/json"
    assert "www-authenticate" not in answer.headers


def test_who_is_let_in_is_answered(closed, request_to) -> None:
    assert request_to(closed, "GET", "/connectors", authorization=basic("ann", "secret")).status == 200


def test_a_path_that_is_none_is_told_to_anybody(closed, request_to) -> None:
    assert request_to(closed, "GET", "/nothing").status == 404


def test_what_workers_ask_one_another_needs_no_password_but_a_signature(closed, request_to) -> None:
    answer = request_to(closed, "PUT", "/connectors/c/fence")
    assert (answer.status, answer.message) == (400, "Internal request missing required signature")
    signed = {"x_connect_authorization": "eA==", "x_connect_request_signature_algorithm": "HmacSHA256"}
    assert request_to(closed, "POST", "/connectors/c/tasks", [], **signed).status == 403


def test_a_browsers_question_comes_without_password(herder, request_to) -> None:
    from wherry.coordinator.rest.headers import HeaderRules

    app = App(herder, version="1", auth=BasicAuth({"a": "b"}), rules=HeaderRules(allowed_origins=("http://ui",)))
    asked = {"origin": "http://ui", "access_control_request_method": "PUT"}
    assert request_to(app, "OPTIONS", "/connectors", **asked).status == 200
    assert request_to(app, "OPTIONS", "/connectors").status == 401
