"""Objects are read in the stored version, shown in the one that people read, and sent in a served one."""

import msgspec
import pytest

from dynamo_graphs.edits import scaled
from dynamo_graphs.reader import Missing, Reading, Target, _hash
from dynamo_graphs.served import in_served_version
from dynamo_graphs.versions import in_version
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.client.client import Answer, Request
from kube_runtime.types.meta import Key, Kind, Object
from kube_runtime.wire import path_of
from scripted.transport import chunks
from simulated.server import Server

KIND = DynamoGraphDeployment.KIND
LATER = Kind(KIND.group, "v1beta1", KIND.name, KIND.plural)
KEY = Key("n", "chat")
CONTAINER = {"name": "main", "image": "example.com/vllm:1"}
COMPONENT = {"name": "Worker", "type": "worker", "replicas": 2}
GRAPH: Object = {
    "apiVersion": LATER.api_version,
    "kind": LATER.name,
    "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    "spec": {"components": [{**COMPONENT, "podTemplate": {"spec": {"containers": [CONTAINER]}}}]},
}


class Serving(Server):
    """An API server that serves these versions and stores `stored`; requests in the other one fail."""

    def __init__(self, stored: Kind, *versions: str) -> None:
        super().__init__()
        self.stored, self.versions = stored, versions
        body = in_version(GRAPH, "v1alpha1") if stored == KIND else GRAPH
        self.storage.create(path_of(stored), body)

    async def send(self, request: Request) -> Answer:
        for kind in (KIND, LATER):
            if kind.version in self.versions and request.path == f"/apis/{kind.api_version}":
                resource = {"name": kind.plural, "kind": kind.name, "namespaced": True}
                hashed = {"storageVersionHash": _hash(KIND) if self.stored == LATER else "other"}
                body = msgspec.json.encode({"resources": [{**resource, **hashed}]})
                return Answer(200, {"content-type": "application/json"}, chunks(body))
        other = LATER if self.stored == KIND else KIND
        assert not request.path.startswith(f"/apis/{other.api_version}/"), "it needs a conversion webhook"
        return await super().send(request)


async def reading(stored: Kind, *versions: str) -> Reading:
    at = Reading(Serving(stored, *versions), "n")
    await at.learn_versions()
    return at


@pytest.mark.parametrize("stored", [KIND, LATER], ids=["v1alpha1", "v1beta1"])
async def test_what_is_read_is_stored_and_what_is_shown_is_v1beta1(stored: Kind) -> None:
    at = await reading(stored, "v1alpha1", "v1beta1")
    whole = await at.document(KIND, KEY)
    (listed,) = await at.documents(KIND, "")
    assert whole == listed
    assert "v1beta1" == at.served_version(KIND)
    assert (LATER.api_version, ["Worker"]) == (
        listed["apiVersion"],
        [component["name"] for component in listed["spec"]["components"]],
    )
    (earlier,) = await at.all_raw(KIND, "n")
    assert (KIND.api_version, 2) == (earlier["apiVersion"], earlier["spec"]["services"]["Worker"]["replicas"])
    assert ["Worker"] == list((await Target(at, DynamoGraphDeployment, KEY).get()).spec.services)


async def test_a_cluster_with_one_version_shows_that_one() -> None:
    at = await reading(KIND, "v1alpha1")
    assert KIND.api_version == ((await at.document(KIND, KEY)) or {})["apiVersion"]
    assert not at.serves(KIND, "v1beta1")


async def test_the_version_that_is_served_is_sent() -> None:
    both = await reading(LATER, "v1alpha1", "v1beta1")
    assert (LATER, GRAPH) == await in_served_version(both, GRAPH)
    kind, body = await in_served_version(await reading(KIND, "v1alpha1"), GRAPH)
    assert (KIND, KIND.api_version) == (kind, body["apiVersion"])
    kind, body = await in_served_version(await reading(LATER, "v1beta1"), in_version(GRAPH, "v1alpha1"))
    assert (LATER, GRAPH["spec"]) == (kind, body["spec"])


async def test_a_kind_without_a_served_version_is_missing() -> None:
    with pytest.raises(
        Missing, match=r"v1beta1 DynamoGraphDeployment is not served .* nor nvidia\.com/v1alpha1"
    ):
        await in_served_version(await reading(KIND), GRAPH)


async def test_replicas_of_a_component_are_set_in_the_list_where_it_is() -> None:
    at = await reading(LATER, "v1beta1")
    sent: list[object] = []

    async def set_field(_live: object, path: object, value: object, **_: object) -> None:
        sent.append((path, value))

    at.client.set_field = set_field  # type: ignore[method-assign,assignment]  # the simulated server has no JSON patch
    await scaled(Target(at, DynamoGraphDeployment, KEY), "Worker", 3)
    assert [(("spec", "services", "Worker", "replicas"), 3)] == sent
