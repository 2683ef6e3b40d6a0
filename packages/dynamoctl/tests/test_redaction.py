"""What a report shows of objects and logs: no value of a secret, and everything else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoctl.inspect.report import REDACTED, redacted, redacted_text
from kube_runtime.kind import Object
from planted_secrets import PLANTED, SECRETS

HARMLESS = [
    "12 tokens in 1.3 s",
    "--max-num-batched-tokens=8192",
    "time to first token: 812ms",
    "tokenizer: fast",
    "basic use",
    "https://example.com/a:b",
    'MountVolume.SetUp failed for volume "hf-token" : secret "hf-token" not found',
    "secretName: weights",
    "automountServiceAccountToken: false",
    "registry.example.com/auth-proxy:1.0",
    "docker-pullable://registry:5000/x@sha256:0123",
    "--api-key-file /etc/key --port 80",
    "the author: me",
]


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_text_with_a_secret(text: str) -> None:
    cleaned = redacted_text(text)
    assert REDACTED in cleaned
    assert PLANTED not in cleaned
    assert cleaned == redacted_text(cleaned)


def test_the_keys_of_aws() -> None:
    assert "s3 REDACTED REDACTED" == redacted_text("s3 AKIAABCDEFGHIJKLMNOP ASIAABCDEFGHIJKLMNOP")


@pytest.mark.parametrize("text", HARMLESS)
def test_a_text_without_a_secret(text: str) -> None:
    assert text == redacted_text(text)


@given(
    st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, "", "x", "token", "secretName"])),
    st.sampled_from([" ", "\n", "; ", "\t"]),
)
def test_a_secret_among_others(texts: list[str], between: str) -> None:
    assert PLANTED not in redacted_text(between.join(texts))


def planted(secret: str) -> st.SearchStrategy[Any]:
    """JSON values that contain the secret somewhere: as a text, and in JSON in a text."""
    leaf = st.sampled_from([secret, f"before {secret}", json.dumps({"a": [secret]})])
    keys = st.sampled_from(["a", "args", "name", "secretName", "token", "value"])
    return st.recursive(
        leaf, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(keys, inner, min_size=1)
    )


@given(st.data(), st.sampled_from(list(SECRETS.values())))
def test_a_secret_anywhere_in_an_object(data: st.DataObject, secret: str) -> None:
    body = {"kind": "Pod", "metadata": {"annotations": {"a": secret}}}
    body["spec"] = data.draw(planted(secret))
    assert PLANTED not in json.dumps(redacted(body))


VARIABLES = [{"name": "DB_LOGIN", "value": PLANTED}, {"name": "VLLM_USE_V1", "value": "1"}]


def test_a_variable_is_shown_only_if_it_is_known() -> None:
    spec = {"containers": [{"env": VARIABLES}]}
    body = redacted({"kind": "Pod", "metadata": {}, "spec": spec})
    assert [REDACTED, "1"] == [it["value"] for it in body["spec"]["containers"][0]["env"]]
    earlier = {"example.com/earlier": json.dumps(spec)}
    body = redacted({"kind": "Pod", "metadata": {"annotations": earlier}})
    assert PLANTED not in json.dumps(body)


@pytest.mark.parametrize(
    "fields",
    [{"credentials": {"a": PLANTED}}, {"passwords": [PLANTED]}, {"pin-auth": [{"x": PLANTED}]}],
)
def test_all_below_a_secret_name(fields: Object) -> None:
    assert PLANTED not in json.dumps(redacted({"kind": "Pod", "metadata": {}, "spec": fields}))


def test_an_object() -> None:
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "chat-0",
            "managedFields": [{}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "example.com/note": "kept",
                "example.com/auth-token": "abc",
            },
        },
        "spec": {
            "containers": [
                {
                    "env": [
                        {"name": "HF_TOKEN", "value": "abc"},
                        {"name": "DYN_ROUTER_MODE", "value": "kv"},
                        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    ],
                    "args": ["--api-key=sk-abcdefghijklmnopqrst", "--password", "x", "--port=8000"],
                }
            ],
            "volumes": [{"secret": {"secretName": "weights"}}],
        },
    }
    found = redacted(body)
    notes = {"example.com/note": "kept", "example.com/auth-token": REDACTED}
    assert {"name": "chat-0", "annotations": notes} == found["metadata"]
    (container,) = found["spec"]["containers"]
    assert [
        {"name": "HF_TOKEN", "value": REDACTED},
        {"name": "DYN_ROUTER_MODE", "value": "kv"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ] == container["env"]
    assert [f"--api-key={REDACTED}", "--password", REDACTED, "--port=8000"] == container["args"]
    assert [{"secret": {"secretName": "weights"}}] == found["spec"]["volumes"]


def test_a_secret_keeps_its_keys_alone() -> None:
    body: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "type": "Opaque",
        "data": {"a": "eA=="},
    }
    assert {"a": REDACTED} == redacted(body)["data"]
