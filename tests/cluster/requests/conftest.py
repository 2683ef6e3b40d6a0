"""The operator's flags in the tests of requests, and who plays the kubelet for profiling pods."""

import pytest

from cluster.requests.playing import FLAGS, Player
from cluster.world import World


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    return FLAGS


@pytest.fixture
def player(world: World) -> Player:
    return Player(world)
