"""`dynamoctl why`: objects that cannot be decoded are named once, and a similar name is suggested."""

import asyncio

import pytest

from dynamo_graphs.reader import Missing
from dynamoctl.inspect.top import print_top
from dynamoctl.inspect.why import print_reasons
from dynamoctl.options import Where
from scripted.odd_server import odd_server

HERE = Where(namespace="prod")
ODD = "warning: left out: dynamographdeployments.nvidia.com prod/odd: "


def test_top_and_why_report_an_undecodable_object_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_server(monkeypatch)
    options = {"everywhere": False, "watch": False}
    asyncio.run(print_top("", HERE, "text", **options, interval_seconds=0))
    printed = capsys.readouterr()
    assert "prod/chat" in printed.out
    assert 1 == printed.err.count(ODD)
    assert 1 == asyncio.run(print_reasons("", HERE, "text", every=True))
    printed = capsys.readouterr()
    assert 1 == printed.err.count(ODD)
    assert "1 not ready, 2 unreadable\n" in printed.err


def test_a_mistyped_name_of_an_undecodable_object_is_suggested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd_server(monkeypatch)
    with pytest.raises(Missing, match='did you mean "odd"'):
        asyncio.run(print_reasons("od", HERE, "text"))
    assert "" == capsys.readouterr().err
