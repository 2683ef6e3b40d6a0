"""Grove and the KAI scheduler's queues on the control plane, without their controllers."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from dynamo_operator.shared.cluster import GROVE, Queue


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds of Grove and KAI, and the queue `dynamo`."""
    with installed(kinds, ("grove", "kai"), (*GROVE.kinds, Queue.KIND)):
        queue = '{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "dynamo"}}'
        kinds.kubectl("create", "--filename=-", input=queue)
        yield kinds
