"""Our kinds, installed once for all tests of the API."""

import msgspec
import pytest

from cluster.api.judge import Judge
from cluster.conftest import ControlPlane
from dynamo_operator.crds import custom_resource_definitions


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane) -> ControlPlane:
    """The control plane, once our CRDs are applied by server-side apply and served."""
    body = {"apiVersion": "v1", "kind": "List", "items": custom_resource_definitions()}
    apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
    control_plane.kubectl(*apply, input=msgspec.json.encode(body).decode())
    names = [f"crd/{each['metadata']['name']}" for each in custom_resource_definitions()]
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=180s", *names)
    return control_plane


@pytest.fixture(scope="session")
def judge(definitions: ControlPlane) -> Judge:
    return Judge(definitions.world("default"))
