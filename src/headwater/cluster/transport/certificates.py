"""A cluster's own certificates: a CA, and one certificate that all tasks use as servers and as clients."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "making certificates needs cryptography, which is not installed: pip install 'headwater[tls]'", name=error.name
    ) from error

from headwater.cluster.transport.security import AUTHORITY, CERTIFICATE, KEY
from headwater.errors import AlreadyExistsError

#: Every task can also be reached from its own machine.
_LOCAL = ("localhost", "127.0.0.1", "::1")
# The certificate must already be valid on a machine whose clock is behind.
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CertificateFiles:
    """The files that `make_certificates` writes; all PEM.

    Attributes:
      authority: the CA's certificate; every task needs it.
      authority_key: the CA's private key; no task needs it, and a program that has it can join the cluster.
      certificate: the tasks' certificate.
      key: the private key of that certificate.
    """

    authority: Path
    authority_key: Path
    certificate: Path
    key: Path

    def environment(self) -> dict[str, str]:
        """The environment variables that make a task use these files."""
        return {AUTHORITY: str(self.authority), CERTIFICATE: str(self.certificate), KEY: str(self.key)}


def make_certificates(directory: Path, hosts: Iterable[str], *, valid_days: int = 365) -> CertificateFiles:
    """Creates a CA and a certificate for ``hosts``, and writes them to ``directory``.

    Args:
      directory: created if it is missing, with access for its owner only.
      hosts: names and IP addresses at which tasks are reached, as in the cluster spec, without ports; this machine's
        loopback names are added.
      valid_days: validity of the certificates, in days.

    Raises:
      AlreadyExistsError: one of the files exists; nothing was written.
    """
    files = CertificateFiles(
        authority=directory / "ca.pem",
        authority_key=directory / "ca-key.pem",
        certificate=directory / "task.pem",
        key=directory / "task-key.pem",
    )
    for file in (files.authority, files.authority_key, files.certificate, files.key):
        if file.exists():
            raise AlreadyExistsError(f"{file} exists; move it away or choose another directory")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("Headwater cluster CA")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now, valid_days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_alternative(host) for host in dict.fromkeys([*hosts, *_LOCAL])]
    certificate = (
        _builder(_name("Headwater task"), authority_name, key.public_key(), now, valid_days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write(files.authority_key, _private(authority_key), 0o600)
    _write(files.key, _private(key), 0o600)
    _write(files.authority, authority.public_bytes(serialization.Encoding.PEM), 0o644)
    _write(files.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return files


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    valid_days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=valid_days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(file: Path, content: bytes, mode: int) -> None:
    # The mode is set at creation, so that other users can never read the key; O_EXCL refuses to follow links that other
    # users have created.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
