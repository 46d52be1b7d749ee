"""What a cluster's API server proves itself with: an authority, a certificate, a signing key."""

import base64
import datetime
import ipaddress
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

_LIFE = datetime.timedelta(days=2)
_CLOCK_SKEW = datetime.timedelta(hours=1)


def write_server_identity(folder: Path, name: str, hosts: Sequence[str]) -> None:
    """Write `ca.crt`, and `server.crt` with `server.key`, signed by an authority made for it."""
    authority = ec.generate_private_key(ec.SECP256R1())
    issuer = _subject(f"authority of {name}")
    key = ec.generate_private_key(ec.SECP256R1())
    ca = (
        _builder(issuer, issuer, authority.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(_key_id(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    server = (
        _builder(_subject(f"API server of {name}"), issuer, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        .add_extension(issued_by, critical=False)
        .sign(authority, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    (folder / "server.crt").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    _write_key(folder / "server.key", key)


def write_signing_key(path: Path) -> rsa.RSAPrivateKey:
    """Make the key that signs the tokens of service accounts, and write it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write_key(path, key)
    return key


def signed_token(key: rsa.RSAPrivateKey, claims: Mapping[str, Any]) -> str:
    """A JSON web token with these claims, signed as the API server signs its own."""
    parts = [_encoded(json.dumps(part)) for part in ({"alg": "RS256", "typ": "JWT"}, dict(claims))]
    signature = key.sign(".".join(parts).encode(), padding.PKCS1v15(), hashes.SHA256())
    return ".".join([*parts, _encoded(signature)])


def _encoded(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFE)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_id(key: ec.EllipticCurvePublicKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Python refuses an authority that does not say that it signs certificates."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
