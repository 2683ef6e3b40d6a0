import stat
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from devcluster.certificates import Authority, Pair, new_authority, write_key_pair, write_private


def policy(authority: Authority) -> PolicyBuilder:
    root = x509.load_pem_x509_certificate(authority.pair.certificate)
    return PolicyBuilder().store(Store([root])).time(datetime.now(UTC))


def certificate(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_a_server_certificate_is_trusted_for_its_names_and_addresses() -> None:
    authority = new_authority("ours")
    server = certificate(authority.issue("server", hosts=("localhost", IPv4Address("127.0.0.1"))))
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["localhost"] == names.get_values_for_type(x509.DNSName)
    assert [IPv4Address("127.0.0.1")] == names.get_values_for_type(x509.IPAddress)
    for name in (x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))):
        policy(authority).build_server_verifier(name).verify(server, [])


def test_a_certificate_of_another_authority_is_not_trusted() -> None:
    server = certificate(new_authority("theirs").issue("server", hosts=("localhost",)))
    verifier = policy(new_authority("ours")).build_server_verifier(x509.DNSName("localhost"))
    with pytest.raises(VerificationError):
        verifier.verify(server, [])


def test_a_client_certificate_carries_user_and_groups_and_is_no_server() -> None:
    client = certificate(new_authority("ours").issue("ann", groups=("a", "b")))
    subject = client.subject
    usages = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert ["ann"] == [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    assert ["a", "b"] == [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert [ExtendedKeyUsageOID.CLIENT_AUTH] == list(usages)


def test_an_authority_read_from_its_files_issues_the_same_trust(tmp_path: Path) -> None:
    authority = new_authority("ours")
    authority.pair.write(tmp_path, "ca")
    again = Authority(Pair.read(tmp_path, "ca"))
    server = certificate(again.issue("server", hosts=("localhost",)))
    policy(authority).build_server_verifier(x509.DNSName("localhost")).verify(server, [])


def test_the_public_key_fits_the_private_one(tmp_path: Path) -> None:
    write_key_pair(tmp_path, "tokens")
    private = load_pem_private_key((tmp_path / "tokens.key").read_bytes(), None)
    public = load_pem_public_key((tmp_path / "tokens.pub").read_bytes())
    assert public == private.public_key()


def test_written_files_are_closed_to_others_even_when_they_were_open_before(
    tmp_path: Path,
) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert b"new" == path.read_bytes()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
