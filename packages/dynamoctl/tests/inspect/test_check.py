"""`dynamoctl check`: clusters without our kinds or without an answer, and options that are wrong."""

import asyncio
import json
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from dynamoctl.inspect.check import print_findings
from dynamoctl.main import app
from dynamoctl.options import CheckOptions
from kube_runtime.client.client import Answer, Request
from scripted.connections import connect_to
from scripted.transport import answer


class WithoutKinds:
    """A cluster without our CRDs, and with nothing of what a check reads."""

    async def send(self, request: Request) -> Answer:
        if "nvidia.com" in request.path:  # our kinds, and the Lease of an operator
            return answer(404, {"kind": "Status", "code": 404, "message": "no such kind"})
        return answer(200, {"gitVersion": "v1.36.3", "metadata": {}, "items": []})


def test_a_namespace_is_checked_before_our_kinds_are_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect_to(WithoutKinds(), monkeypatch)
    asyncio.run(print_findings(CheckOptions(is_before=True, namespace="team-a"), "text"))
    lines = capsys.readouterr().out.splitlines()
    assert "ok       Pull Secrets: no graph names an image" in lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CheckOptions(namespace="../../nodes"), "invalid namespace"),
        *(
            (CheckOptions(account=name), f'invalid ServiceAccount "{name}" \\(expected NAMESPACE/NAME')
            for name in ("operator", "prod/", "/operator", "a/b/c")
        ),
    ],
)
def test_a_name_that_would_be_another_path_is_not_asked_for(options: CheckOptions, message: str) -> None:
    with pytest.raises(CycloptsError, match=message):
        asyncio.run(print_findings(options, "text"))


def test_a_cluster_that_does_not_answer_fails_all_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    body = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
    }
    kubeconfig.write_text(json.dumps(body), encoding="utf-8")
    assert 3 == app()(["check", "--kubeconfig", str(kubeconfig)])
    printed = capsys.readouterr().out
    for name in ("kubectl Connectivity", "Default StorageClass", "GPU Operator"):
        assert f"fail     {name}: " in printed
    assert printed.endswith("Summary: 0 passed, 4 failed\n")


def test_a_missing_operator_is_the_first_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect_to(WithoutKinds(), monkeypatch)
    assert 1 == asyncio.run(print_findings(CheckOptions(namespace="team-a"), "text"))
    head, first, remedy, *_ = capsys.readouterr().out.splitlines()
    assert "checks failed: Operator, " in head
    assert first.startswith("fail     Operator: none found: no Lease kube-system/dynamo.nvidia.com")
    assert "dynamoctl install --print | kubectl apply --server-side -f -" in remedy
