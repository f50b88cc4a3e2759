"""How a schema registry is reached: addresses, who we are, whom we trust; under Confluent's names, with Java's stores.

Every setting may carry the prefix `schema.registry.` or not, as Confluent's converters take them. Key stores of Java
are read here and reach OpenSSL through memory, never through a file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wherry.contract import jaas, kafka_security
from wherry.contract.errors import ConfigError

URL: Final = "schema.registry.url"
PREFIX: Final = "schema.registry."
REQUEST_TIMEOUT_S: Final = 10.0
TRIES_MAX: Final = 2
TRY_PAUSE_MS: Final = 200
TRY_PAUSE_MAX_MS: Final = 2_000
_BASIC: Final = "basic.auth.credentials.source"
_BEARER: Final = "bearer.auth.credentials.source"
_SCHEMES: Final = ("http", "https", "mock")


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """How to reach a registry.

    Attributes:
        client: Configuration of the registry's client.
        pems: PEM texts that it wants as files, by the setting that names the file.
        checks_host: Whether the certificate has to be that of the host asked for.
    """

    client: Mapping[str, Any] = dataclasses.field(repr=False)
    pems: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    checks_host: bool = True

    @property
    def shown(self) -> str:
        """The addresses without what may stand in them of names and passwords."""
        return ",".join(
            f"{scheme}{separator}{rest.rpartition('@')[2]}"
            for scheme, separator, rest in (url.strip().partition("://") for url in self.client["url"].split(","))
        )

    def connect(self, **more: Any) -> Any:
        """Makes the client; nothing is asked of the registry yet.

        Raises:
            ConfigError: The client's library is not there, or a setting can't be used.
        """
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            raise ConfigError(
                f"The schema registry's client lacks a part ({error}); install wherry[registry].", key=URL
            ) from None
        try:
            with _in_memory(self.pems) as files:
                client = SchemaRegistryClient.new_client({**self.client, **files, **more})
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"The schema registry's settings can't be used: {error}", key=URL) from None
        if not self.checks_host:
            # The client has no setting for it.
            client._rest_client.verify.check_hostname = False
        return client


def access_of(config: Mapping[str, str]) -> Access:
    """Reads the settings of a converter, without its prefix.

    Raises:
        ConfigError: There is no address, or a setting can't be used.
    """
    urls = [url.strip() for url in (config.get(URL) or "").split(",") if url.strip()]
    if not urls:
        raise ConfigError(
            f"Missing required configuration {URL}, the address of the schema registry; http://host:8081 would be one.",
            key=URL,
        )
    for url in urls:
        if url.partition("://")[0] not in _SCHEMES or "://" not in url:
            shown = url.rpartition("@")[2]
            raise ConfigError(
                f"Invalid value {shown} for configuration {URL}: an address begins with http:// or https://.", key=URL
            )
    settings: dict[str, Any] = {
        "url": ",".join(urls),
        "timeout": REQUEST_TIMEOUT_S,
        "max.retries": TRIES_MAX,
        "retries.wait.ms": TRY_PAUSE_MS,
        "retries.max.wait.ms": TRY_PAUSE_MAX_MS,
        **_credentials(config, "@" in urls[0].partition("://")[2].partition("/")[0]),
    }
    proxy = _given(config, "proxy.host")
    if proxy:
        settings["proxy"] = f"http://{proxy}:{_given(config, 'proxy.port') or 80}"
    return _with_tls(settings, config)


def _given(config: Mapping[str, str], key: str) -> str:
    return (config.get(f"{PREFIX}{key}") or config.get(key) or "").strip()


def _credentials(config: Mapping[str, str], in_url: bool) -> dict[str, str]:
    token = _given(config, "bearer.auth.token")
    source = _given(config, _BEARER).upper()
    if source not in {"", "STATIC_TOKEN"}:
        raise ConfigError(f"Invalid value {source} for configuration {_BEARER}: STATIC_TOKEN can be used.", key=_BEARER)
    if source and not token:
        raise ConfigError(f"{_BEARER}={source} needs bearer.auth.token.", key="bearer.auth.token")
    if token:
        return {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": token,
            "bearer.auth.logical.cluster": _given(config, "bearer.auth.logical.cluster"),
            "bearer.auth.identity.pool.id": _given(config, "bearer.auth.identity.pool.id"),
        }
    source = _given(config, _BASIC).upper() or "URL"
    if source == "URL":
        return {}
    if source == "SASL_INHERIT":
        user = _user_of(_given(config, jaas.KEY))
    elif source == "USER_INFO":
        user = _given(config, "basic.auth.user.info")
    else:
        raise ConfigError(
            f"Invalid value {source} for configuration {_BASIC}: URL, USER_INFO and SASL_INHERIT can be used.",
            key=_BASIC,
        )
    if ":" not in user:
        raise ConfigError(
            f"{_BASIC}={source} needs basic.auth.user.info, a name and a password with a colon between.",
            key="basic.auth.user.info",
        )
    if in_url:
        raise ConfigError(f"{_BASIC}={source} and a name in {URL} contradict each other: leave one out.", key=_BASIC)
    return {"basic.auth.user.info": user}


def _user_of(line: str) -> str:
    if not line:
        raise ConfigError(f"{_BASIC}=SASL_INHERIT needs {jaas.KEY} among the converter's settings.", key=jaas.KEY)
    options = jaas.parse(line).options
    return f"{options.get('username', '')}:{options.get('password', '')}"


def _with_tls(settings: dict[str, Any], config: Mapping[str, str]) -> Access:
    prefix = f"{PREFIX}ssl."
    java = {f"ssl.{key.removeprefix(prefix)}": value for key, value in config.items() if key.startswith(prefix)}
    try:
        found = kafka_security.tls(java)
    except ConfigError as error:
        key = f"{PREFIX}{error.key}" if error.key else ""
        raise ConfigError(f"{PREFIX}{error.message}", key=key) from error
    pems = {}
    if "ssl.ca.pem" in found:
        pems["ssl.ca.location"] = found["ssl.ca.pem"]
    if "ssl.key.pem" in found and "ssl.certificate.pem" in found:
        pems["ssl.certificate.location"] = found["ssl.key.pem"] + found["ssl.certificate.pem"]
    files: dict[str, Any] = {
        key: found[key]
        for key in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password")
        if key in found
    }
    return Access({**settings, **files}, pems, found.get("ssl.endpoint.identification.algorithm", "https") != "none")


@contextlib.contextmanager
def _in_memory(pems: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Files for OpenSSL, whose interface takes nothing else, that lie in memory and have no name on any disk."""
    with contextlib.ExitStack() as open_files:
        names = {}
        for key, pem in pems.items():
            descriptor = os.memfd_create("wherry-registry", os.MFD_CLOEXEC)
            open_files.callback(os.close, descriptor)
            os.write(descriptor, pem.encode())
            names[key] = f"/proc/self/fd/{descriptor}"
        yield names
