"""TLS of `https` listeners and of requests to other workers, from the settings that Java's Jetty takes them from.

Decides which settings count and makes a context of them; keys stay in memory. `listeners.https.X` counts in the place
of `X` for all of them or for none: one prefixed setting makes the worker look at prefixed ones only.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from typing import Final

from wherry.contract import kafka_security
from wherry.contract.errors import ConfigError

_log = logging.getLogger(__name__)

MAIN_PREFIX: Final = "listeners.https."
ADMIN_PREFIX: Final = "admin.listeners.https."
_CLIENT_AUTH: Final[Mapping[str, ssl.VerifyMode]] = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PROTOCOLS: Final[Mapping[str, ssl.TLSVersion]] = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PROTOCOLS_DEFAULT: Final = "TLSv1.2,TLSv1.3"
_OWN_KEY: Final = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.pem")
# Choices among parts of a Java runtime.
_MEANINGLESS: Final = (
    "ssl.provider",
    "ssl.protocol",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
)


def settings(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The `ssl.…` settings that count for listeners of a prefix."""
    prefixed = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
    return prefixed or {key: value for key, value in values.items() if key.startswith("ssl.")}


def server_context(java: Mapping[str, str], key: str) -> ssl.SSLContext:
    """A context to serve with.

    Args:
        java: Settings as `settings` gives them.
        key: The setting that asked for https, for messages.

    Raises:
        ConfigError: There is no key to serve with, or a setting cannot be used.
    """
    given = kafka_security.tls(java)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_key(context, given, key)
    _set_protocols(context, java.get("ssl.enabled.protocols", "") or _PROTOCOLS_DEFAULT)
    suites = given.get("ssl.cipher.suites")
    if suites:
        try:
            context.set_ciphers(suites)
        except ssl.SSLError as error:
            message = f"ssl.cipher.suites={java['ssl.cipher.suites']} leaves no cipher that is known here."
            raise ConfigError(message, key="ssl.cipher.suites") from error
    _set_client_auth(context, java, given)
    for name in _MEANINGLESS:
        if java.get(name):
            _log.warning("The setting %s means nothing to a REST server without Java.", name)
    return context


def client_context(java: Mapping[str, str], key: str) -> ssl.SSLContext:
    """A context to ask another worker with: trusts what the stores trust, and shows their key, if there is one.

    Args:
        java: Settings as `settings` gives them; the same ones that this worker serves with.
        key: The setting that asked for https, for messages.

    Raises:
        ConfigError: A setting cannot be used.
    """
    given = kafka_security.tls(java)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = given.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if any(name in given for name in _OWN_KEY):
        _load_key(context, given, key)
    _set_protocols(context, java.get("ssl.enabled.protocols", "") or _PROTOCOLS_DEFAULT)
    _load_trust(context, given, ssl.Purpose.SERVER_AUTH)
    return context


def _load_key(context: ssl.SSLContext, given: Mapping[str, str], key: str) -> None:
    password = given.get("ssl.key.password")
    try:
        if "ssl.certificate.location" in given:
            context.load_cert_chain(given["ssl.certificate.location"], given["ssl.key.location"], password)
        elif "ssl.key.pem" in given and "ssl.certificate.pem" in given:
            _load_pem(context, given["ssl.key.pem"] + given["ssl.certificate.pem"])
        else:
            raise ConfigError(
                f"{key} asks for https, which needs a key and a certificate: set ssl.keystore.location and "
                "ssl.keystore.password (JKS, PKCS12 or PEM), alone or with the prefix of the listeners.",
                key="ssl.keystore.location",
            )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        where = given.get("ssl.certificate.location", "ssl.keystore")
        reason = getattr(error, "strerror", None) or str(error) or "wrong password, or key and certificate do not fit"
        raise ConfigError(
            f"{where}: no key and certificate to serve https with ({reason}).", key="ssl.keystore.location"
        ) from error


def _load_pem(context: ssl.SSLContext, pem: str) -> None:
    """OpenSSL's interface in Python takes files only: this one lies in memory and has no name on any disk."""
    descriptor = os.memfd_create("wherry-rest", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _set_protocols(context: ssl.SSLContext, enabled: str) -> None:
    names = [name.strip() for name in enabled.split(",") if name.strip()]
    known = [_PROTOCOLS[name] for name in names if name in _PROTOCOLS]
    if not known:
        raise ConfigError(
            f"ssl.enabled.protocols={enabled} names none of {', '.join(_PROTOCOLS)}; older ones are not served.",
            key="ssl.enabled.protocols",
        )
    context.minimum_version, context.maximum_version = min(known), max(known)


def _set_client_auth(context: ssl.SSLContext, java: Mapping[str, str], given: Mapping[str, str]) -> None:
    wanted = java.get("ssl.client.auth", "none").strip().lower()
    if wanted not in _CLIENT_AUTH:
        raise ConfigError(
            f"Invalid value {wanted} for configuration ssl.client.auth: one of {', '.join(_CLIENT_AUTH)} is expected.",
            key="ssl.client.auth",
        )
    context.verify_mode = _CLIENT_AUTH[wanted]
    if context.verify_mode is ssl.CERT_NONE:
        return
    _load_trust(context, given, ssl.Purpose.CLIENT_AUTH)


def _load_trust(context: ssl.SSLContext, given: Mapping[str, str], purpose: ssl.Purpose) -> None:
    try:
        if "ssl.ca.pem" in given:
            context.load_verify_locations(cadata=given["ssl.ca.pem"])
        elif "ssl.ca.location" in given:
            context.load_verify_locations(cafile=given["ssl.ca.location"])
        else:
            context.load_default_certs(purpose)
    except OSError as error:
        checked = "clients" if purpose is ssl.Purpose.CLIENT_AUTH else "other workers"
        raise ConfigError(
            f"ssl.truststore: no certificates to check {checked} with ({error.strerror or error}).",
            key="ssl.truststore.location",
        ) from error
