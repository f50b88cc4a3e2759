"""Turns a JDBC URL of PostgreSQL into a libpq connection string; never opens a connection."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from wherry.contract.errors import ConfigError

PREFIX = "jdbc:postgresql:"

# Properties of the PostgreSQL JDBC driver and the libpq parameters that do the same.
RENAMED = {
    "user": "user",
    "password": "password",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslrootcert": "sslrootcert",
    "sslpassword": "sslpassword",
    "targetServerType": "target_session_attrs",
    "tcpKeepAlive": "keepalives",
    "options": "options",
    "gssEncMode": "gssencmode",
    "channelBinding": "channel_binding",
}
TARGET_SESSION = {"primary": "primary", "master": "primary", "secondary": "standby", "any": "any"}
FLAGS = {"true": "1", "false": "0"}


def to_libpq(url: str, user: str | None = None, password: str | None = None) -> tuple[str, list[str]]:
    """Translates a JDBC URL.

    Args:
        url: `jdbc:postgresql://host[:port][,host…]/database[?property=value&…]`.
        user: Name from the configuration; wins over the URL's.
        password: Password from the configuration; wins over the URL's.

    Returns:
        The libpq URI, and the names of the properties that mean nothing here (they steer the Java driver alone,
        such as reWriteBatchedInserts).

    Raises:
        ConfigError: The URL is not one of PostgreSQL.
    """
    if not url.startswith(PREFIX):
        raise ConfigError(
            f"Invalid value {url.split('?')[0]} for configuration connection.url: only PostgreSQL is supported, "
            "as jdbc:postgresql://host:port/database",
            key="connection.url",
        )
    rest, _, query = url[len(PREFIX) :].partition("?")
    address = rest.removeprefix("//") if rest.startswith("//") else "localhost/" + rest
    hosts, _, database = address.partition("/")
    parameters: dict[str, str] = {}
    dropped: list[str] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        _translate(name, value, parameters, dropped)
    if user:
        parameters["user"] = user
    if password is not None:
        parameters["password"] = password
    text = urlencode(parameters, quote_via=quote)
    return f"postgresql://{hosts}/{database}{'?' + text if text else ''}", dropped


def _translate(name: str, value: str, parameters: dict[str, str], dropped: list[str]) -> None:
    if name == "currentSchema":
        parameters["options"] = (parameters.get("options", "") + f" -csearch_path={value}").strip()
    elif name == "ssl" and value.lower() in ("true", ""):
        parameters.setdefault("sslmode", "verify-full")
    elif name == "targetServerType":
        parameters["target_session_attrs"] = TARGET_SESSION.get(value, "any")
    elif name in RENAMED:
        parameters[RENAMED[name]] = FLAGS.get(value.lower(), value) if name == "tcpKeepAlive" else value
    else:
        dropped.append(name)
