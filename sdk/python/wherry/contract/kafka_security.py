"""TLS and SASL settings of Java's Kafka clients, as librdkafka's.

Decides what stores, JAAS lines and handler classes mean. What must not be ignored is refused: going on without a key
or a login would only fail later and say less. Converted keys stay in memory, as PEM.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wherry.contract import jaas
from wherry.contract.errors import ConfigError
from wherry.contract.keystores import key_entry, key_of_pem, normal_pem, trusted

_PEM_SUFFIXES: Final = (".pem", ".crt", ".cer")
_TLS13: Final = frozenset(
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_CCM_SHA256"]
)
_OAUTH_HANDLERS: Final = frozenset({"OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler"})
_RETRIEVERS: Final[Mapping[str, str]] = {
    "": "",
    "DefaultJwtRetriever": "",
    "ClientCredentialsJwtRetriever": "client_credentials",
    "JwtBearerJwtRetriever": "urn:ietf:params:oauth:grant-type:jwt-bearer",
}
_UNSECURED: Final = "unsecuredLoginStringClaim_"


def refusal_remedy(text: str) -> str:
    """What to do when librdkafka refuses to make a client, by what it says."""
    if "SASL mechanism GSSAPI" in text:
        return (
            "This build of the Kafka client has no Kerberos: install one that was built with it (the system's "
            "librdkafka and libsasl2, then pip install --no-binary confluent-kafka confluent-kafka)."
        )
    return "Check the producer., consumer. and admin. settings of the worker and the connector's overrides."


def tls(java: Mapping[str, str]) -> dict[str, str]:
    """TLS settings.

    Raises:
        ConfigError: A store or key cannot be used; the message names setting and file.
    """
    if java.get("ssl.engine.factory.class"):
        raise ConfigError(
            "ssl.engine.factory.class is Java code; name the stores themselves (ssl.truststore.location, "
            "ssl.keystore.location).",
            key="ssl.engine.factory.class",
        )
    values = {**_trust(java), **_own_key(java)}
    if "ssl.endpoint.identification.algorithm" in java:
        values["ssl.endpoint.identification.algorithm"] = (
            java["ssl.endpoint.identification.algorithm"].lower() or "none"
        )
    suites = _cipher_suites(java.get("ssl.cipher.suites", ""))
    if suites:
        values["ssl.cipher.suites"] = suites
    return values


def _trust(java: Mapping[str, str]) -> dict[str, str]:
    location = java.get("ssl.truststore.location", "")
    if location and _is_pem("truststore", location, java):
        return {"ssl.ca.location": location}
    if location:
        try:
            return {"ssl.ca.pem": trusted(location, java.get("ssl.truststore.password"))}
        except ConfigError as error:
            raise ConfigError(f"ssl.truststore.location: {error.message}", key="ssl.truststore.location") from error
    certificates = java.get("ssl.truststore.certificates", "")
    if not certificates:
        return {}
    return {"ssl.ca.pem": _inline("ssl.truststore.certificates", certificates)}


def _own_key(java: Mapping[str, str]) -> dict[str, str]:
    location, password = java.get("ssl.keystore.location", ""), java.get("ssl.key.password")
    if location and _is_pem("keystore", location, java):
        protected = {"ssl.key.password": password} if password else {}
        return {"ssl.certificate.location": location, "ssl.key.location": location, **protected}
    if location:
        try:
            entry = key_entry(location, java.get("ssl.keystore.password"), password)
        except ConfigError as error:
            raise ConfigError(f"ssl.keystore.location: {error.message}", key="ssl.keystore.location") from error
        return {"ssl.certificate.pem": entry.chain_pem, "ssl.key.pem": entry.key_pem}
    values = {}
    if java.get("ssl.keystore.key"):
        values["ssl.key.pem"] = key_of_pem(java["ssl.keystore.key"], password, name="ssl.keystore.key").key_pem
    if java.get("ssl.keystore.certificate.chain"):
        chain = java["ssl.keystore.certificate.chain"]
        values["ssl.certificate.pem"] = _inline("ssl.keystore.certificate.chain", chain)
    return values


def _is_pem(store: str, location: str, java: Mapping[str, str]) -> bool:
    """Whether librdkafka can read it itself; what a store without type holds is told by its content, later."""
    kind = java.get(f"ssl.{store}.type", "").upper()
    return kind == "PEM" or (not kind and location.endswith(_PEM_SUFFIXES))


def _inline(key: str, text: str) -> str:
    pem = normal_pem(text)
    if "BEGIN CERTIFICATE" not in pem:
        hint = (
            f" It looks like a path: that belongs to {key.rpartition('.')[0]}.location." if Path(text).exists() else ""
        )
        raise ConfigError(f"{key} must hold certificates as PEM text (-----BEGIN CERTIFICATE-----…).{hint}", key=key)
    return pem


def _cipher_suites(value: str) -> str:
    """Java's names as OpenSSL's: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    found = []
    for name in names:
        if name in _TLS13:
            continue  # always on, and no part of OpenSSL's list
        text = name.removeprefix("TLS_").removeprefix("RSA_WITH_").replace("_WITH_", "_").replace("_CBC_", "_")
        for bits in ("128", "256"):
            text = text.replace(f"AES_{bits}", f"AES{bits}")
        text = text.removesuffix("_SHA256") if "CHACHA20" in text else text
        found.append(text.replace("_", "-"))
    return ":".join(found)


def sasl(java: Mapping[str, str]) -> dict[str, str]:
    """SASL settings; none where nobody logs in, whatever else is said about it.

    Raises:
        ConfigError: The login cannot be done without Java.
    """
    if not java.get("security.protocol", "").strip().upper().startswith("SASL_"):
        return {}
    for key in ("sasl.client.callback.handler.class", "sasl.login.class"):
        if java.get(key):
            raise ConfigError(f"{key}={java[key]} is Java code, which cannot log in here.{_hint(java[key])}", key=key)
    handler = java.get("sasl.login.callback.handler.class", "")
    if handler and handler.rpartition(".")[2] not in _OAUTH_HANDLERS:
        raise ConfigError(
            f"sasl.login.callback.handler.class={handler} is Java code, which cannot log in here; Kafka's own "
            f"OAuthBearerLoginCallbackHandler can be used.{_hint(handler)}",
            key="sasl.login.callback.handler.class",
        )
    values = _login(jaas.parse(java[jaas.KEY]), java) if java.get(jaas.KEY) else {}
    values |= _oauth(java)
    return values


def _hint(handler: str) -> str:
    if "IAM" in handler.upper() and ("aws" in handler.lower() or "msk" in handler.lower()):
        return " For Amazon MSK use SCRAM or TLS client certificates, which it offers beside IAM."
    return ""


def _login(module: jaas.LoginModule, java: Mapping[str, str]) -> dict[str, str]:
    match module.simple_name:
        case "PlainLoginModule" | "ScramLoginModule":
            return _user(module)
        case "OAuthBearerLoginModule":
            return _bearer(module)
        case "Krb5LoginModule":
            return _kerberos(module, java)
        case _:
            raise ConfigError(
                f"sasl.jaas.config names the login module {module.name}, which is Java code; PlainLoginModule, "
                "ScramLoginModule, OAuthBearerLoginModule and Krb5LoginModule can be used.",
                key=jaas.KEY,
            )


def _user(module: jaas.LoginModule) -> dict[str, str]:
    if "username" not in module.options or "password" not in module.options:
        raise ConfigError(
            "sasl.jaas.config must hold username and password, such as "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
            key=jaas.KEY,
        )
    if module.flag("tokenauth"):
        raise ConfigError(
            "sasl.jaas.config asks for a delegation token (tokenauth), which librdkafka cannot use; name a user.",
            key=jaas.KEY,
        )
    return {"sasl.username": module.options["username"], "sasl.password": module.options["password"]}


def _kerberos(module: jaas.LoginModule, java: Mapping[str, str]) -> dict[str, str]:
    options = module.options
    # IBM's module of the same name writes useKeytab="file:///path".
    keytab = options.get("keyTab") or options.get("useKeytab", "").removeprefix("file://")
    values = {"sasl.kerberos.principal": options["principal"]} if options.get("principal") else {}
    service = java.get("sasl.kerberos.service.name") or options.get("serviceName")
    if service:
        values["sasl.kerberos.service.name"] = service
    if module.flag("useKeyTab") or keytab:
        if not keytab or "principal" not in options:
            raise ConfigError(
                "sasl.jaas.config wants Kerberos with a key table: it needs keyTab and principal, such as "
                'Krb5LoginModule required useKeyTab=true keyTab="/etc/x.keytab" principal="user@REALM";',
                key=jaas.KEY,
            )
        values["sasl.kerberos.keytab"] = keytab
        if java.get("sasl.kerberos.kinit.cmd"):
            command = java["sasl.kerberos.kinit.cmd"]
            values["sasl.kerberos.kinit.cmd"] = (
                f'{command} -t "%{{sasl.kerberos.keytab}}" -k %{{sasl.kerberos.principal}}'
            )
        return values
    if not module.flag("useTicketCache"):
        raise ConfigError(
            "sasl.jaas.config wants Kerberos with a password, which cannot be asked for: set useKeyTab=true with "
            "keyTab and principal, or useTicketCache=true.",
            key=jaas.KEY,
        )
    # Whoever keeps the ticket cache renews it: librdkafka runs no kinit of its own then.
    return {**values, "sasl.kerberos.min.time.before.relogin": "0"}


def _bearer(module: jaas.LoginModule) -> dict[str, str]:
    options = module.options
    names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
    values = {f"sasl.oauthbearer.{names[name]}": text for name, text in options.items() if name in names}
    extensions = [f"{name[10:]}={text}" for name, text in options.items() if name.startswith("extension_")]
    if extensions:
        values["sasl.oauthbearer.extensions"] = ",".join(extensions)
    if f"{_UNSECURED}sub" in options:
        values["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        values["sasl.oauthbearer.config"] = f"principal={options[f'{_UNSECURED}sub']}"
    if options.get("ssl.truststore.location"):
        values["https.ca.pem"] = trusted(options["ssl.truststore.location"], options.get("ssl.truststore.password"))
    return values


def _oauth(java: Mapping[str, str]) -> dict[str, str]:
    retriever = java.get("sasl.oauthbearer.jwt.retriever.class", "")
    name = retriever.rpartition(".")[2]
    url = java.get("sasl.oauthbearer.token.endpoint.url", "")
    if name not in _RETRIEVERS:
        raise ConfigError(
            f"sasl.oauthbearer.jwt.retriever.class={retriever} cannot be used here: "
            f"{', '.join(each for each in _RETRIEVERS if each)} can.",
            key="sasl.oauthbearer.jwt.retriever.class",
        )
    if url.startswith("file:"):
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url names a file with a token, which librdkafka cannot read: name the "
            "https address that issues tokens.",
            key="sasl.oauthbearer.token.endpoint.url",
        )
    return {"sasl.oauthbearer.grant.type": _RETRIEVERS[name]} if _RETRIEVERS[name] else {}
