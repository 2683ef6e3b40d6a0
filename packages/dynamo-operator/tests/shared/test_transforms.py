"""Of a pull secret the cache keeps the registries and nothing secret."""

import base64
import json

import pytest

from dynamo_operator.shared.cluster import PullSecret
from dynamo_operator.shared.transforms import registries_only
from kube_runtime.types.meta import Metadata


def secret(content: bytes) -> PullSecret:
    """A pull secret with that file inside."""
    return PullSecret(Metadata("s"), {".dockerconfigjson": base64.b64encode(content).decode()})


def test_the_registries_of_a_secret() -> None:
    auths = {"https://nvcr.io/v2/": {"auth": "dTpzZWNyZXQ="}, "reg:5005": {"password": "secret"}}
    kept = registries_only(secret(json.dumps({"auths": auths}).encode()))
    assert {"nvcr.io", "reg:5005"} == set(kept.data)
    assert "secret" not in repr(kept.data)
    assert "dTpzZWNyZXQ" not in repr(kept.data)


@pytest.mark.parametrize("entry", [{}, None, {"auth": "dTpw"}, {"auth": "dTpwcA"}, {"auth": ""}])
def test_an_entry_that_the_kubelet_can_read_counts(entry: object) -> None:
    assert {"a.io": ""} == registries_only(secret(json.dumps({"auths": {"a.io": entry}}).encode())).data


MALFORMED = (
    *(b"", b"no json", b"[]", b'{"auths": 3}', b"\xff"),
    b'{"auths": {"\xff\xfe.io": {}}}',
    b'{"auths": {"a.io": ' + b"[" * 3000 + b"]" * 3000 + b"}}",
    *(b'{"auths": {"a.io": %s, "b.io": {}}}' % entry for entry in (b"1", b"[]", b'"x"', b"true")),
    *(b'{"auths": {"a.io": {"auth": %s}}}' % auth for auth in (b"1", b'"%%%"', b'"c2VjcmV0"')),
)


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_secret_has_no_registries(content: bytes) -> None:
    assert {} == registries_only(secret(content)).data


@pytest.mark.parametrize("data", ["%%%", "\N{SNOWMAN}"])
def test_no_text_of_a_secret_ends_the_watch(data: str) -> None:
    assert {} == registries_only(PullSecret(Metadata("s"), {".dockerconfigjson": data})).data


def test_the_copy_that_kubectl_leaves_in_an_annotation_is_not_kept() -> None:
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"x":"c2VjcmV0"}}'}
    kept = registries_only(PullSecret(Metadata("s", annotations=copy), {}))
    assert {} == kept.metadata.annotations
