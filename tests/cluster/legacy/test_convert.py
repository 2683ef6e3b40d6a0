"""`dynamoctl convert --cluster` reads what runs, and the API server takes what it prints."""

import asyncio

import pytest

from cluster.conftest import ControlPlane
from cluster.legacy.deployments import COMPONENT, IMAGE, with_image, worker
from cluster.world import World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.documents import documents
from dynamoctl.authoring.convert import convert_cluster
from dynamoctl.options import ConvertOptions, Where

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_what_runs_is_converted(
    world: World, kinds: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    with_image(world)
    world.create(COMPONENT, worker())
    where = Where(namespace=world.namespace, kubeconfig=kinds.kubeconfig)
    assert asyncio.run(convert_cluster(where, ConvertOptions(suffix="-new"))) == 0
    text = capsys.readouterr().out
    [converted] = [each.value for each in documents("stdout", text)]
    assert converted["kind"] == DynamoComponentDeployment.KIND.name
    assert converted["spec"]["extraPodSpec"]["mainContainer"]["image"] == IMAGE
    assert "managedFields" not in text
    kinds.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=text)
