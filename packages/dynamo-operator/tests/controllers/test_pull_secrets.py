"""Of a pull secret the cache keeps the registries and nothing secret."""

import base64
import json

import pytest

from dynamo_graphs.types.secrets import PullSecret
from dynamo_operator.reconcile.transforms import registries_only
from kube_runtime.types.meta import Metadata


def secret(content: bytes) -> PullSecret:
    """A pull secret with that file inside."""
    return PullSecret(Metadata("s"), {".dockerconfigjson": base64.b64encode(content).decode()})


def test_the_registries_of_a_secret() -> None:
    auths = {"https://nvcr.io/v2/": {"auth": "c2VjcmV0"}, "reg:5005": {"password": "secret"}}
    kept = registries_only(secret(json.dumps({"auths": auths}).encode()))
    assert {"nvcr.io", "reg:5005"} == set(kept.data)
    assert "secret" not in repr(kept.data)
    assert "c2VjcmV0" not in repr(kept.data)


MALFORMED = (
    *(b"", b"no json", b"[]", b'{"auths": 3}', b"\xff"),
    b'{"auths": {"\xff\xfe.io": {}}}',
    b'{"auths": {"a.io": ' + b"[" * 3000 + b"]" * 3000 + b"}}",
)


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_secret_has_no_registries(content: bytes) -> None:
    assert {} == registries_only(secret(content)).data


def test_a_secret_that_is_not_base64_has_no_registries() -> None:
    assert {} == registries_only(PullSecret(Metadata("s"), {".dockerconfigjson": "%%%"})).data


@pytest.mark.parametrize("data", ["%%%", "\N{SNOWMAN}"])
def test_no_text_of_a_secret_ends_the_watch(data: str) -> None:
    assert {} == registries_only(PullSecret(Metadata("s"), {".dockerconfigjson": data})).data


def test_the_copy_that_kubectl_leaves_in_an_annotation_is_not_kept() -> None:
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"x":"c2VjcmV0"}}'}
    kept = registries_only(PullSecret(Metadata("s", annotations=copy), {}))
    assert "c2VjcmV0" not in repr(kept)
