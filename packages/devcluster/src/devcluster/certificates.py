"""Certificates and keys of one instance: its CAs, server and client certificates, the key of tokens.

etcd has its own CA, as with kubeadm: a client certificate for the API server must not give access to etcd,
where Secrets are in plain text.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self, cast

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from kube_runtime import tls

LIFETIME = timedelta(days=3650)
"""Longer than any local instance lives, because nothing renews certificates."""


@dataclass(frozen=True, slots=True)
class Pair(tls.Pair):
    """A certificate and its private key, as PEM, with files to keep them in."""

    def write(self, folder: Path, name: str) -> None:
        """Write `<name>.crt` and `<name>.key`, readable by the user only."""
        write_private(folder / f"{name}.crt", self.certificate)
        write_private(folder / f"{name}.key", self.key)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """Read what `write` wrote."""
        return cls((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority."""

    pair: Pair

    def issue(
        self, user: str, *, groups: Sequence[str] = (), hosts: Sequence[str | IPv4Address] = ()
    ) -> Pair:
        """Issue a certificate for a client; with `hosts`, for a server that is also a client.

        Kubernetes reads the user from the common name and the groups from the organizations.
        """
        signer = load_pem_private_key(self.pair.key, password=None)
        own = load_pem_x509_certificate(self.pair.certificate)
        issued = tls.Authority(own, cast("ec.EllipticCurvePrivateKey", signer)).issue(
            *(user, hosts), now=datetime.now(UTC), life=LIFETIME, groups=groups, is_client=True
        )
        return Pair(issued.certificate, issued.key)


def new_authority(name: str) -> Authority:
    """Create a self-signed authority."""
    authority = tls.new_authority(name, now=datetime.now(UTC), life=LIFETIME)
    return Authority(Pair(authority.pem, tls.key_pem(authority.key)))


def write_key_pair(folder: Path, name: str) -> None:
    """Write `<name>.key` and `<name>.pub`, which sign and verify tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_private(folder / f"{name}.key", tls.key_pem(key))
    write_private(folder / f"{name}.pub", public)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that no other user can open at any moment."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
