"""Cases that together make the operator write objects of all kinds, and the admission that refuses them."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cluster.graph.graphs import graph, service
from cluster.legacy.deployments import CONFIG, NIM, disagg, graph_config, image
from cluster.requests.playing import REQUEST, a_request
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_graphs.types.optional_apis import InferencePool, LeaderWorkerSet, PodGroup, VirtualService
from dynamo_legacy.api.deployment import DynamoDeployment
from kube_runtime.client.transport import Request
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.rbac import Role, RoleBinding
from lifecycle.running import GRAPH, NAMESPACE, Running, running
from simulated.server import Target, status
from simulated.storage import Storage

TEXT = "not today, says the test"
_GOLDEN = Path(__file__).parents[1] / "golden/cases"
_EVENTS = "/api/v1/events"


@dataclass(frozen=True)
class Case:
    """What a user creates, the last object of which is to report, and the CRDs that exist."""

    objects: tuple[tuple[Kind, Object], ...]
    installed: tuple[Kind, ...] = ()
    settings: RenderSettings = RenderSettings()
    legacy_kinds: bool = False

    def running(self) -> AbstractAsyncContextManager[Running]:
        """An operator in the cluster of the case, before the user creates anything."""
        return running(
            installed=self.installed, legacy_kinds=self.legacy_kinds, render=self.settings
        )

    def create(self, world: Running) -> None:
        """Create the objects of the user."""
        for kind, body in self.objects:
            world.create(kind, body)

    def reported(self, world: Running) -> str:
        """The messages of the user's object whose conditions are false, and its state."""
        kind, body = self.objects[-1]
        live = world.read(kind, body["metadata"]["name"]).get("status", {})
        conditions = live.get("conditions", [])
        return "\n".join(
            condition["message"] for condition in conditions if condition["status"] == "False"
        )


def _golden(name: str, *installed: Kind) -> Case:
    folder = _GOLDEN / name
    body = yaml.safe_load((folder / "in.yaml").read_text())
    given = folder / "settings.yaml"
    settings: Any = yaml.safe_load(given.read_text()) if given.exists() else {}
    return Case(((GRAPH, body),), installed, msgspec.convert(settings, RenderSettings))


@cache
def cases() -> Mapping[str, Case]:
    """The cases by name."""
    scaled = service("worker", scalingAdapter={"enabled": True})
    nim = {"metadata": {"name": "frontend--x"}, "spec": {"bentoTag": "frontend:x"}}
    del nim
    return {
        "scaled": Case(((GRAPH, graph(Decode=scaled)),)),
        "planner": _golden("planner"),
        "epp": _golden("epp", InferencePool.KIND),
        "ingress": _golden("ingress"),
        "virtual service": _golden("virtual-service", VirtualService.KIND),
        "groups": _golden("multinode-trtllm", LeaderWorkerSet.KIND, PodGroup.KIND),
        "model": _golden("model-reference"),
        "claims": _golden("volume-claims"),
        "budget": _golden("disruption-budget"),
        "grove": _golden("grove", PodCliqueSet.KIND),
        "request": Case(
            ((REQUEST, a_request()),),
            settings=RenderSettings(
                dgdr_profiling_cluster_role_name="view", operator_image="dynamo-operator:test"
            ),
        ),
        "older generation": Case(
            (
                (CONFIG, graph_config()),
                (NIM, image()),
                (DynamoDeployment.KIND, disagg()),
            ),
            legacy_kinds=True,
        ),
    }


def written(world: Running) -> dict[str, set[str]]:
    """The names of the objects that the operator created, by collection."""
    created: dict[str, set[str]] = {}
    for request in world.server.requests:
        target = Target.of(request.path)
        is_apply = request.method == "PATCH" and "apply" in request.content_type
        if request.method == "POST" or is_apply:
            created.setdefault(target.collection, set()).add(target.name)
    return created
