"""The operator's flags in the tests of requests, and who plays the kubelet for profiling pods."""

import pytest

from cluster.requests.playing import FLAGS, Player
from cluster.world import World


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It may profile, and its graphs may be elsewhere."""
    return FLAGS


@pytest.fixture
def player(world: World) -> Player:
    """The kubelet of this namespace's profiling pods."""
    return Player(world)
