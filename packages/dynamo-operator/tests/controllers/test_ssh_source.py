"""The SSH keys that the operator makes are keys that ssh takes."""

import base64

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from dynamo_operator.features.ssh_keys import creates_ssh_keys, new_keys
from dynamo_operator.settings import RenderSettings


def test_the_two_keys_belong_together() -> None:
    keys = {name: base64.b64decode(text) for name, text in new_keys().items()}
    private = load_ssh_private_key(keys["private.key"], password=None)
    assert isinstance(private, RSAPrivateKey)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert public == keys["private.key.pub"].strip()


def test_keys_are_made_only_when_it_is_asked_for_and_they_have_a_name() -> None:
    assert creates_ssh_keys(RenderSettings(mpi_secret_made=True, mpi_secret_name="k"))
    assert not creates_ssh_keys(RenderSettings(mpi_secret_made=True))
    assert not creates_ssh_keys(RenderSettings(mpi_secret_name="k", mpi_secret_namespace="n"))
