"""Every test here with an API server that streams lists, and with one that has pages only."""

import pytest

from simulated.server import Server


@pytest.fixture(autouse=True, params=[True, False], ids=["streamed", "paged"])
def _lists(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "STREAMS_LISTS", request.param)
