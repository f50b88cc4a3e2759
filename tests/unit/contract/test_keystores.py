"""Key stores made by keytool are read without Java; what cannot be read says why, and never shows a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from wherry.contract.errors import ConfigError
from wherry.contract.keystores import key_entry, key_of_pem, normal_pem, trusted

STORES = Path(__file__).parents[2] / "cases" / "keystores"


def subjects(pem: str) -> list[str]:
    return [each.subject.rfc4514_string() for each in x509.load_pem_x509_certificates(pem.encode())]


@pytest.mark.parametrize(
    ("name", "password"),
    [("trust.jks", "trustpass"), ("trust.jks", None), ("trust.p12", "trustpass")],
)
def test_every_certificate_of_a_trust_store_is_read(name: str, password: str | None) -> None:
    assert sorted(subjects(trusted(STORES / name, password))) == ["CN=middle", "CN=root"]


def test_a_pkcs12_trust_store_without_protection_needs_no_password() -> None:
    assert subjects(trusted(STORES / "open.p12")) == ["CN=root"]


def test_what_a_store_is_is_told_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "store.jks").write_bytes((STORES / "trust.p12").read_bytes())
    assert len(subjects(trusted(tmp_path / "store.jks", "trustpass"))) == 2
    assert subjects(trusted(STORES / "root.pem")) == ["CN=root"]


@pytest.mark.parametrize(
    ("name", "key_password"), [("key.jks", "keypass"), ("key.p12", None), ("key.p12", "storepass")]
)
def test_a_key_comes_with_its_chain_in_order_and_fits_its_certificate(name: str, key_password: str | None) -> None:
    entry = key_entry(STORES / name, "storepass", key_password)
    assert subjects(entry.chain_pem)[:2] == ["CN=me", "CN=middle"]
    key = serialization.load_pem_private_key(entry.key_pem.encode(), None)
    certificate = x509.load_pem_x509_certificate(entry.chain_pem.encode())
    assert key.public_key() == certificate.public_key()
    assert "PRIVATE" not in repr(entry)


@pytest.mark.parametrize(
    ("name", "password", "key_password", "message"),
    [
        ("key.jks", "wrong", None, "password of the key store is wrong"),
        ("key.jks", "storepass", "wrong", "password of the private key is wrong"),
        ("key.jks", "storepass", None, "password of the private key is wrong"),
        ("key.jks", None, None, "private key needs a password, and none is set"),
        ("key.p12", "wrong", None, "password of the key store is wrong"),
        ("key.p12", None, None, "key store needs a password, and none is set"),
        ("trust.jks", "trustpass", None, "holds no private key with a certificate"),
        ("trust.p12", "trustpass", None, "holds no private key with a certificate"),
        ("root.pem", None, None, "holds no private key"),
        ("old.jceks", "storepass", None, "is a JCEKS key store: convert it with keytool"),
        ("none.jks", "storepass", None, "cannot be read: No such file"),
    ],
)
def test_a_key_that_cannot_be_had_says_why(
    name: str, password: str | None, key_password: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as found:
        key_entry(STORES / name, password, key_password)
    assert name in found.value.message
    assert "storepass" not in found.value.message


@pytest.mark.parametrize("cut", [5, 30, 200, -30])
def test_a_damaged_jks_store_is_told_and_not_guessed_at(tmp_path: Path, cut: int) -> None:
    (tmp_path / "cut.jks").write_bytes((STORES / "trust.jks").read_bytes()[:cut])
    with pytest.raises(ConfigError, match="damaged"):
        trusted(tmp_path / "cut.jks")


def test_a_text_is_no_key_store(tmp_path: Path) -> None:
    (tmp_path / "x.jks").write_text("hello")
    with pytest.raises(ConfigError, match="none of the key stores that can be read: JKS, PKCS12 or PEM"):
        trusted(tmp_path / "x.jks")
    (tmp_path / "x.pem").write_text("-----BEGIN NOTHING-----\n-----END NOTHING-----")
    with pytest.raises(ConfigError, match="holds no certificate"):
        trusted(tmp_path / "x.pem")


def test_an_encrypted_pem_key_needs_its_password() -> None:
    key = serialization.load_pem_private_key(key_entry(STORES / "key.p12", "storepass").key_pem.encode(), None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()
    assert "BEGIN PRIVATE KEY" in key_of_pem(sealed, "secret", name="ssl.keystore.key").key_pem
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key: the private key needs a password"):
        key_of_pem(sealed, None, name="ssl.keystore.key")
    with pytest.raises(ConfigError, match="is wrong"):
        key_of_pem(sealed, "other", name="ssl.keystore.key")


@pytest.mark.parametrize("between", [" ", "\\n", ""])
def test_pem_on_one_line_gets_its_line_ends_back(between: str) -> None:
    text = (STORES / "root.pem").read_text().strip()
    assert normal_pem(text.replace("\n", between)) == text + "\n"
