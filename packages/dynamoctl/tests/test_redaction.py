"""What a report shows of objects and logs: no value of a secret, and everything else."""

import pytest

from dynamoctl.inspect.redaction import REDACTED, redacted, redacted_text
from kube_runtime.kind import Object


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx",
        '{"password": "correcthorse"}',
        "key hf_abcdefghijklmnopqrstuvwx in the middle",
        "s3 AKIAABCDEFGHIJKLMNOP",
        "https://user:pa55word@example.com/x",
        "NGC_API_KEY: nvapi-abcdefghijklmnopqrstuvwx",
    ],
)
def test_a_text_with_a_secret(text: str) -> None:
    found = redacted_text(text)
    assert REDACTED in found
    for each in ("abcdefgh", "horse", "pa55word", "AKIA"):
        assert each not in found


@pytest.mark.parametrize(
    "text",
    [
        "12 tokens in 1.3 s",
        "--max-num-batched-tokens=8192",
        "tokenizer: fast",
        "basic use",
        "https://example.com/a:b",
    ],
)
def test_a_text_without_a_secret(text: str) -> None:
    assert text == redacted_text(text)


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
                        {"name": "MODE", "value": "kv"},
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
        {"name": "MODE", "value": "kv"},
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
