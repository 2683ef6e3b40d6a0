"""Which registry an image comes from, and which one a credential is for."""

import pytest

from dynamo_operator.shared.cluster import registry_of_credential, registry_of_image


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("nvcr.io/nvidia/vllm:1", "nvcr.io"),
        ("registry.example.com:5000/a/b@sha256:0", "registry.example.com:5000"),
        ("localhost/a", "localhost"),
        ("localhost:5000/a", "localhost:5000"),
        ("NVCR.io/a", "nvcr.io"),
        ("busybox", "docker.io"),
        ("busybox:1.37", "docker.io"),
        ("library/busybox", "docker.io"),
        ("docker.io/lib/y:1", "docker.io"),
        ("index.docker.io/lib/y", "docker.io"),
    ],
)
def test_an_image_names_its_registry(image: str, registry: str) -> None:
    assert registry == registry_of_image(image)


@pytest.mark.parametrize(
    ("server", "registry"),
    [
        ("nvcr.io", "nvcr.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("registry.example.com:5000/path", "registry.example.com:5000"),
        ("http://localhost:5000", "localhost:5000"),
    ],
)
def test_a_credential_is_for_one_registry(server: str, registry: str) -> None:
    assert registry == registry_of_credential(server)
