"""Java's key stores read without Java: JKS, PKCS12 and PEM, to PEM texts in memory.

Decides what a store holds by its bytes, as Java's own `JKS` type does with PKCS12 files, and never by its name. What
comes out is PEM for OpenSSL; nothing is written to disk, so that no converted key can be left behind there. Knows
nothing of Kafka; its messages name the file and never a password.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wherry.contract.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

STORE_BYTES_MAX: Final = 16 * 1024 * 1024
ENTRIES_MAX: Final = 100_000
_JKS_MAGIC: Final = 0xFEEDFEED
_JCEKS_MAGIC: Final = 0xCECECECE
_DER_SEQUENCE: Final = 0x30
_PRIVATE_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES: Final = 20
# The password's digest of a whole JKS file is salted with these words, by its format.
_JKS_WHITENER: Final = b"Mighty Aphrodite"
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key with its certificates.

    Attributes:
        key_pem: The key, not encrypted, PKCS 8.
        chain_pem: Its certificate, then those that signed it.
    """

    key_pem: str
    chain_pem: str

    def __repr__(self) -> str:
        return "KeyEntry(…)"  # it may end up in a log


def trusted(path: str | Path, password: str | None = None) -> str:
    """All certificates of a trust store, as PEM.

    Raises:
        ConfigError: It cannot be read, is of no known kind, or holds no certificate.
    """
    data = _read(path)
    if _is_pem(data):
        found = "".join(_certificates_of(_text(path, data)))
    elif _magic(data) == _JKS_MAGIC:
        found = "".join(_to_pem(der) for entry in _jks(path, data, password) for der in entry.chain)
    else:
        _, certificate, others = _pkcs12(path, data, password)
        found = "".join(_certificate_pem(each) for each in (certificate, *others) if each is not None)
    if not found:
        raise ConfigError(f"{path} holds no certificate.")
    return found


def key_entry(path: str | Path, password: str | None = None, key_password: str | None = None) -> KeyEntry:
    """The first private key of a key store.

    Args:
        path: The file.
        password: Of the store.
        key_password: Of the key; None is the store's.

    Raises:
        ConfigError: It cannot be read, is of no known kind, a password is wrong, or it holds no private key.
    """
    data = _read(path)
    if _is_pem(data):
        return key_of_pem(_text(path, data), key_password, name=str(path))
    if _magic(data) == _JKS_MAGIC:
        for entry in _jks(path, data, password):
            if entry.protected_key:
                der = _unprotect(path, entry.protected_key, key_password or password or "")
                return KeyEntry(_key_pem(_load_der(path, der)), "".join(map(_to_pem, entry.chain)))
    else:
        key, certificate, others = _pkcs12(path, data, password)
        if key is not None and certificate is not None:
            chain = "".join(_certificate_pem(each) for each in (certificate, *_issuers(certificate, others)))
            return KeyEntry(_key_pem(key), chain)
    raise ConfigError(f"{path} holds no private key with a certificate.")


def key_of_pem(text: str, password: str | None, *, name: str) -> KeyEntry:
    """A private key and its certificates out of one PEM text.

    Args:
        text: Key and certificates, in any order of the two.
        password: Of the key, when it is encrypted.
        name: Where the text is from, for messages.

    Raises:
        ConfigError: There is no key in it, or its password is wrong.
    """
    pem = normal_pem(text)
    blocks = [block for block in _PEM_BLOCK.finditer(pem) if block[1].endswith("PRIVATE KEY")]
    if not blocks:
        raise ConfigError(f"{name} holds no private key.")
    from cryptography.hazmat.primitives import serialization

    encrypted = "ENCRYPTED" in blocks[0][1]
    try:
        key = serialization.load_pem_private_key(
            blocks[0][0].encode(), (password or "").encode() if encrypted else None
        )
    except (ValueError, TypeError) as error:
        raise ConfigError(_bad_password(name, password, "private key")) from error
    return KeyEntry(_key_pem(key), "".join(_certificates_of(pem)))


def normal_pem(text: str) -> str:
    """PEM with the line ends that OpenSSL wants: properties files often hold it on one line."""
    return "".join(
        f"-----BEGIN {block[1]}-----\n{_wrapped(''.join(block[2].split()))}-----END {block[1]}-----\n"
        for block in _PEM_BLOCK.finditer(text.replace("\\n", "\n"))
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a JKS file; `protected_key` is empty for a certificate alone."""

    protected_key: bytes
    chain: tuple[bytes, ...]


def _read(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"The key store {path} cannot be read: {error.strerror or error}.") from None
    if len(data) > STORE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {STORE_BYTES_MAX} bytes, which no key store is.")
    magic = _magic(data)
    if magic == _JCEKS_MAGIC:
        raise ConfigError(
            f"{path} is a JCEKS key store: convert it with keytool -importkeystore -deststoretype PKCS12."
        )
    if magic != _JKS_MAGIC and not _is_pem(data) and data[:1] != bytes([_DER_SEQUENCE]):
        raise ConfigError(f"{path} is none of the key stores that can be read: JKS, PKCS12 or PEM.")
    return data


def _magic(data: bytes) -> int:
    return int.from_bytes(data[:4], "big")


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data


def _text(path: str | Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} looks like PEM but is not UTF-8 text.") from None


def _certificates_of(text: str) -> Iterator[str]:
    for block in _PEM_BLOCK.finditer(normal_pem(text)):
        if block[1] in ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"):
            yield block[0] + "\n"


def _wrapped(body: str) -> str:
    return "".join(body[at : at + _PEM_LINE] + "\n" for at in range(0, len(body), _PEM_LINE))


def _to_pem(der: bytes) -> str:
    import base64

    return f"-----BEGIN CERTIFICATE-----\n{_wrapped(base64.b64encode(der).decode())}-----END CERTIFICATE-----\n"


def _bad_password(name: str | Path, password: str | None, what: str) -> str:
    if not password:
        return f"{name}: the {what} needs a password, and none is set."
    return f"{name}: the password of the {what} is wrong, or the file is damaged."


# ---- JKS -----------------------------------------------------------------------------------------------------------


class _Bytes:
    """A cursor over Java's DataOutput."""

    def __init__(self, path: str | Path, data: bytes) -> None:
        self._path = path
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) < count:
            raise ConfigError(f"{self._path} is a JKS key store that ends too early: it is damaged.")
        self._at += count
        return part

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def block(self) -> bytes:
        return self.take(self.number())

    def skip_text(self) -> None:
        self.take(int(struct.unpack(">H", self.take(2))[0]))


def _jks(path: str | Path, data: bytes, password: str | None) -> list[_Entry]:
    if len(data) < _DIGEST_BYTES:
        raise ConfigError(f"{path} is a JKS key store that ends too early: it is damaged.")
    if password:
        digest = hashlib.sha1(_utf16(password) + _JKS_WHITENER + data[:-_DIGEST_BYTES], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise ConfigError(_bad_password(path, password, "key store"))
    cursor = _Bytes(path, data[:-_DIGEST_BYTES])
    cursor.number()
    version, count = cursor.number(), cursor.number()
    if count > ENTRIES_MAX:
        raise ConfigError(f"{path} claims to hold {count} entries: it is damaged.")
    return [_jks_entry(path, cursor, version) for _ in range(count)]


def _jks_entry(path: str | Path, cursor: _Bytes, version: int) -> _Entry:
    tag = cursor.number()
    cursor.skip_text()  # alias
    cursor.take(8)  # time of creation
    if tag not in (_PRIVATE_KEY, _CERTIFICATE):
        raise ConfigError(f"{path} holds an entry of the unknown kind {tag}: it is damaged.")
    protected = cursor.block() if tag == _PRIVATE_KEY else b""
    count = cursor.number() if tag == _PRIVATE_KEY else 1
    chain = []
    for _ in range(min(count, ENTRIES_MAX)):
        if version > 1:
            cursor.skip_text()  # kind of certificate
        chain.append(cursor.block())
    return _Entry(protected, tuple(chain))


def _unprotect(path: str | Path, protected: bytes, password: str) -> bytes:
    """The key out of JKS's own protection: a stream of chained digests, and a digest to check it by."""
    secret = _utf16(password)
    sealed = _octets(path, protected)
    salt, body, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    plain = bytearray()
    digest = salt
    for at in range(0, len(body), _DIGEST_BYTES):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        plain += bytes(a ^ b for a, b in zip(body[at : at + _DIGEST_BYTES], digest, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + bytes(plain), usedforsecurity=False).digest(), check):
        raise ConfigError(_bad_password(path, password, "private key"))
    return bytes(plain)


def _octets(path: str | Path, der: bytes) -> bytes:
    """The second part of an EncryptedPrivateKeyInfo: SEQUENCE { algorithm, OCTET STRING }."""
    try:
        _, start, _ = _der_at(der, 0)
        _, _, algorithm_end = _der_at(der, start)
        tag, start, end = _der_at(der, algorithm_end)
    except IndexError:
        tag, start, end = 0, 0, 0
    if tag != 0x04 or end - start < 2 * _DIGEST_BYTES:
        raise ConfigError(f"{path} holds a private key in a form that cannot be read.")
    return der[start:end]


def _der_at(der: bytes, at: int) -> tuple[int, int, int]:
    """Tag, and where the content begins and ends."""
    length = der[at + 1]
    start = at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(der[start : start + count], "big")
        start += count
    return der[at], start, start + length


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


# ---- PKCS12, and keys by the library ---------------------------------------------------------------------------------


def _pkcs12(path: str | Path, data: bytes, password: str | None) -> tuple[Any, Any, list[Any]]:
    """Key, its certificate and all others; a store without password may be sealed with the empty one or none."""
    from cryptography.hazmat.primitives.serialization import pkcs12

    last: Exception | None = None
    for each in (password.encode(),) if password else (None, b""):
        try:
            return pkcs12.load_key_and_certificates(data, each)
        except (ValueError, TypeError) as error:
            last = error
    raise ConfigError(_bad_password(path, password, "key store")) from last


def _issuers(certificate: Any, others: list[Any]) -> list[Any]:
    """The certificates that signed it, in order; a store may hold others, in any order."""
    chain: list[Any] = []
    last = certificate
    while last.issuer != last.subject and len(chain) < len(others):
        found = [each for each in others if each.subject == last.issuer and each not in chain]
        if not found:
            break
        last = found[0]
        chain.append(last)
    return chain


def _certificate_pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return str(certificate.public_bytes(Encoding.PEM).decode())


def _load_der(path: str | Path, der: bytes) -> PrivateKeyTypes:
    from cryptography.hazmat.primitives import serialization

    try:
        return serialization.load_der_private_key(der, None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} holds a private key of a kind that cannot be read: {error}") from error


def _key_pem(key: Any) -> str:
    from cryptography.hazmat.primitives import serialization

    return str(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
    )
