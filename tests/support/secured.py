"""A broker that lets nobody in without papers: TLS, SCRAM, mutual TLS and OAuth, with stores as keytool makes them.

The broker trusts the root alone while the client's certificate is signed by one between, so that a client is let in
only if it sends its whole chain.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.server
import ipaddress
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.ports import LOOPBACK, free_ports

STORE_PASSWORD = "store pass;=\\"
KEY_PASSWORD = "key-pass"
USER, USER_PASSWORD = "alice", 'scram "pass";='
_DAY = datetime.timedelta(days=1)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_ADMIN_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class Pair:
    """A key with its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def make_pair(name: str, issuer: Pair | None = None, *, authority: bool = False) -> Pair:
    """A pair signed by another, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]), critical=False)
    )
    return Pair(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


@dataclass(frozen=True)
class Papers:
    """Stores in a folder, in the formats that Java has.

    Attributes:
        broker: PKCS12 store of the broker.
        client_jks: JKS store of the client, whose key has a password of its own.
        client_p12: The same as PKCS12.
        trust_jks: JKS store with the root alone.
        trust_p12: The same as PKCS12.
        root_pem: The root's certificate.
    """

    broker: Path
    client_jks: Path
    client_p12: Path
    trust_jks: Path
    trust_p12: Path
    root_pem: Path

    @classmethod
    def make(cls, folder: Path) -> Papers:
        """Make all of them."""
        root = make_pair("root", authority=True)
        middle = make_pair("middle", root, authority=True)
        papers = cls(*(folder / name for name in (
            "broker.p12", "client.jks", "client.p12", "trust.jks", "trust.p12", "root.pem",
        )))  # fmt: skip
        papers.broker.write_bytes(_pkcs12("broker", make_pair("broker", root), []))
        papers.client_p12.write_bytes(_pkcs12("client", make_pair(USER, middle), [middle.certificate]))
        papers.root_pem.write_bytes(root.certificate.public_bytes(serialization.Encoding.PEM))
        keytool(
            *("-importkeystore", "-srckeystore", str(papers.client_p12), "-srcstorepass", STORE_PASSWORD),
            *("-destkeystore", str(papers.client_jks), "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD),
            *("-srcalias", "client", "-destkeypass", KEY_PASSWORD),
        )
        for store, kind in ((papers.trust_jks, "JKS"), (papers.trust_p12, "PKCS12")):
            keytool(
                *("-importcert", "-noprompt", "-alias", "root", "-file", str(papers.root_pem)),
                *("-keystore", str(store), "-storetype", kind, "-storepass", STORE_PASSWORD),
            )
        return papers


def keytool(*arguments: str) -> None:
    """Run Java's keytool."""
    tool = find_java().executable.with_name("keytool")
    done = subprocess.run([str(tool), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _pkcs12(name: str, pair: Pair, others: list[x509.Certificate]) -> bytes:
    sealed = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(name.encode(), pair.key, pair.certificate, others, sealed)


@dataclass(frozen=True)
class SecuredKafka:
    """A running broker with its guarded doors."""

    open: str
    scram: str
    mutual: str
    oauth: str
    token_url: str
    papers: Papers


@contextlib.contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Start one, with `USER` known to it."""
    papers = Papers.make(folder)
    ports = free_ports(5, LOOPBACK)
    addresses = [f"{LOOPBACK}:{port}" for port in ports]
    names = ("PLAINTEXT", "SCRAM", "MUTUAL", "OAUTH")
    listeners = ",".join(f"{name}://{address}" for name, address in zip(names, addresses, strict=False))
    options = {
        "listeners": f"{listeners},CONTROLLER://{addresses[4]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_SSL,MUTUAL:SSL,"
        "OAUTH:SASL_PLAINTEXT",
        "ssl.keystore.location": str(papers.broker), "ssl.keystore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": str(papers.trust_jks), "ssl.truststore.password": STORE_PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f'{_OAUTH} required unsecuredLoginStringClaim_sub="b";',
    }  # fmt: skip
    with (
        EmbeddedKafka(port=ports[0], controller_port=ports[4], options=options) as kafka,
        token_server() as token_url,
    ):
        _add_user(kafka.bootstrap)
        yield SecuredKafka(*addresses[:4], token_url, papers)


def _add_user(bootstrap: str) -> None:
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, credentials, USER_PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.alter_user_scram_credentials([wanted])[USER].result(_ADMIN_TIMEOUT_S)


@contextlib.contextmanager
def token_server() -> Iterator[str]:
    """A token endpoint that gives everybody who knows the secret an unsigned token, as brokers in tests accept."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            known = base64.b64encode(b"wherry:oauth-secret").decode() in self.headers.get("Authorization", "")
            body = json.dumps({"access_token": _token(), "token_type": "bearer", "expires_in": 600} if known else {})
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}/token"
    finally:
        server.shutdown()
        server.server_close()


def _token() -> str:
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 600, "scope": "x"})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join((*encoded, ""))
