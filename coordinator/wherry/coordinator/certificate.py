"""A certificate for the line to workers on other machines, made anew at each start and known to those workers alone.

It travels to them inside the Spark job, as the token does: whoever can read one can read the other, and nobody else can
read what goes over the line or pretend to be its other end.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import Final

VALID_DAYS: Final = 3650
"""Longer than any coordinator runs."""
CLOCK_SKEW_DAYS: Final = 1


@dataclass(frozen=True, slots=True)
class Certificate:
    """A key and the certificate for it, as PEM."""

    key: bytes
    certificate: bytes


def for_host(host: str) -> Certificate:
    """Make a certificate for a name or address by which workers call us."""
    # Heavy, and needed on clusters only.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    try:
        name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        name = x509.DNSName(host)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wherry-coordinator")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=CLOCK_SKEW_DAYS))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM),
    )
