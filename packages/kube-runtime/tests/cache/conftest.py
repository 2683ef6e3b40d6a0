"""Tests of watches run with an API server that streams lists, and with one that has pages only."""

import pytest

from simulated.server import Server


@pytest.fixture(params=[True, False], ids=["streamed", "paged"])
def lists(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of lists, one after the other."""
    monkeypatch.setattr(Server, "STREAMS_LISTS", request.param)
