"""The API server presents a client certificate, and the operator accepts no client without one."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from cluster.admission.conftest import Install, Installation
from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph
from cluster.world import GRAPH, Refused, World
from devcluster.components import CLIENT_NAME
from reviews.asking import review
from reviews.rows import graph as reviewed

GRAPHS = "/validate-nvidia-com-v1alpha1-dynamographdeployment"


def client_ca(kinds: ControlPlane, name: str) -> str:
    return f"--webhook-client-ca={kinds.instance.pki / name}.crt"


@pytest.fixture(scope="module")
def required(kinds: ControlPlane, install: Install) -> Iterator[Installation]:
    """An operator that accepts the API server only."""
    flags = (client_ca(kinds, "webhook-clients-ca"), f"--webhook-client-name={CLIENT_NAME}")
    with install(*flags) as found:
        yield found


def test_the_api_server_is_accepted_with_its_certificate(world: World, required: Installation) -> None:
    world.create(GRAPH, graph("chat"))
    with pytest.raises(Refused, match="denied the request") as refused:
        world.create(GRAPH, graph("wrong", Frontend={"componentType": "frontend"}))
    assert "image" in str(refused.value)
    assert required.process.ended is None
    world.eventually(GRAPH, "chat", lambda found: bool(condition(found, "Ready")))


@pytest.mark.parametrize("certificate", ["", "admin"])
def test_a_client_with_no_certificate_or_that_of_another_ca_is_refused(
    certificate: str, kinds: ControlPlane, required: Installation
) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        pki = kinds.instance.pki
        context.load_cert_chain(pki / f"{certificate}.crt", pki / f"{certificate}.key")
    request = urllib.request.Request(
        f"https://127.0.0.1:{required.port}{GRAPHS}",
        data=review(reviewed()),
        headers={"Content-Type": "application/json"},
    )
    with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
        urllib.request.urlopen(request, context=context, timeout=60)  # noqa: S310


def test_an_api_server_whose_certificate_is_of_another_ca_is_refused(
    kinds: ControlPlane, world: World, install: Install
) -> None:
    with install(client_ca(kinds, "ca")) as there:
        with pytest.raises(Refused, match="failed calling webhook"):
            world.create(GRAPH, graph("chat"))
        assert there.process.ended is None
