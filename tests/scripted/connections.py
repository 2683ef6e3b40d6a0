"""Connect dynamoctl's commands to a scripted API server."""

from contextlib import nullcontext

import pytest

from dynamo_graphs import reader
from kube_runtime.client.client import Transport


def connect_to(server: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands connect to this API server until the end of the test."""

    async def connect(*_: object, **__: object) -> nullcontext[Transport]:
        return nullcontext(server)

    monkeypatch.setattr(reader, "connect", connect)
