"""`dynamoctl install cleanup`: what it takes from objects, and what remains."""

import asyncio

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.change.uninstall import uninstall
from dynamoctl.options import Where
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from scripted.odd_server import odd_server


def test_uninstall_removes_its_finalizer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = odd_server(monkeypatch)
    assert 0 == asyncio.run(uninstall(Where(namespace="prod"), is_dry=False))
    printed = capsys.readouterr()
    assert "removed the finalizer of DynamoGraphDeployment prod/odd\n" in printed.out
    assert "  1 worker keeps its LoRA until it restarts\n" in printed.out
    assert "remaining: 2 DynamoGraphDeployment, 1 DynamoModel\n" in printed.out
    assert "" == printed.err
    left = server.storage.read(path_of(DynamoGraphDeployment.KIND), Key("prod", "odd"))
    assert [] == left["metadata"]["finalizers"]
