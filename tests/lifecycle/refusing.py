"""Cases that together make the operator write objects of all kinds, and the admission that refuses them."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cluster.graph.graphs import graph, service
from cluster.legacy.deployments import CONFIG, NIM, disagg, graph_config, image
from cluster.legacy.deployments import worker as nim_worker
from cluster.requests.playing import REQUEST, a_request
from dynamo_graphs.explanation import explanation
from dynamo_graphs.reader import STATED
from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE, INFERENCE_POOL, ISTIO, LEADER_WORKER_SET
from kube_runtime.client.client import Request
from kube_runtime.types.kinds import Role, RoleBinding
from kube_runtime.types.meta import Key, Kind, Object, from_json
from kube_runtime.wire import path_of
from lifecycle.running import GRAPH, Running, running
from simulated.server import Target, status
from simulated.storage import Storage

TEXT = "not today, says the test"
_GOLDEN = Path(__file__).parents[1] / "golden/cases"
ROLES = path_of(Role.KIND)


@dataclass(frozen=True)
class Case:
    """What a user creates, the last object of which is to report, and the CRDs that exist."""

    objects: tuple[tuple[Kind, Object], ...]
    installed: tuple[Kind, ...] = ()
    settings: RenderSettings = field(default_factory=RenderSettings)
    legacy_kinds: bool = False

    def running(self) -> AbstractAsyncContextManager[Running]:
        """An operator in the cluster of the case, before the user creates anything."""
        return running(installed=self.installed, legacy_kinds=self.legacy_kinds, render=self.settings)

    def create(self, world: Running) -> None:
        for kind, body in self.objects:
            world.create(kind, body)

    def reported(self, world: Running) -> str:
        """The messages of the user's object whose conditions are false, and its state."""
        kind, body = self.objects[-1]
        live = world.read(kind, body["metadata"]["name"]).get("status", {})
        conditions = live.get("conditions", [])
        return "\n".join(condition["message"] for condition in conditions if condition["status"] == "False")

    def why(self, world: Running) -> str:
        """The first cause in `dynamoctl why`, which knows today's kinds; of others, what they report."""
        kind, body = self.objects[-1]
        for type_ in STATED:
            if type_.KIND == kind:
                live = from_json(msgspec.json.encode(world.read(kind, body["metadata"]["name"])), type_)
                said = explanation(live, now=datetime.now(UTC)).findings
                return next(line for line in said if line.startswith(("The operator reports", "Service ")))
        return self.reported(world)


def _golden(name: str, *installed: Kind) -> Case:
    folder = _GOLDEN / name
    body = yaml.safe_load((folder / "in.yaml").read_text())
    given = folder / "settings.yaml"
    settings: Any = yaml.safe_load(given.read_text()) if given.exists() else {}
    return Case(((GRAPH, body),), installed, msgspec.convert(settings, RenderSettings))


_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_SECRET = Kind("", "v1", "Secret", "secrets")
_KEYS: Object = {
    "metadata": {"name": "mpi-run-ssh-secret"},
    "type": "Opaque",
    "data": {"private.key": "YQ==", "private.key.pub": "YQ=="},
}
_NIM_WITH_ALL: Object = {
    "replicas": 1,
    "pvc": {
        "create": True,
        "name": "data",
        "mountPoint": "/data",
        "size": "1Gi",
        "volumeAccessMode": "ReadWriteOnce",
    },
    "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 5},
}


@cache
def cases() -> Mapping[str, Case]:
    scaled = graph(Decode=service("worker", scalingAdapter={"enabled": True}))
    groups = _golden("multinode-trtllm", *LEADER_WORKER_SET.kinds)
    claims = _golden("volume-claims")
    nim = nim_worker()
    nim["spec"] |= _NIM_WITH_ALL
    requests = RenderSettings(dgdr_profiling_cluster_role_name="view", operator_image="dynamo-operator:test")
    return {
        "scaled": Case(((GRAPH, scaled),)),
        "planner": _golden("planner"),
        "endpoint picker": _golden("epp", *INFERENCE_POOL.kinds),
        "ingress": _golden("ingress"),
        "virtual service": replace(
            _golden("virtual-service", *ISTIO.kinds), settings=RenderSettings(allowed_gateways="*")
        ),
        "groups": replace(groups, objects=((_SECRET, _KEYS), *groups.objects)),
        "model": _golden("model-reference"),
        "claims": replace(claims, objects=((_CLAIM, {"metadata": {"name": "mine"}}), *claims.objects)),
        "budget": _golden("disruption-budget"),
        "Grove": _golden("grove", *GROVE.kinds),
        "request": Case(((REQUEST, a_request()),), settings=requests),
        "older graph": Case(
            ((CONFIG, graph_config()), (NIM, image()), (DynamoDeployment.KIND, disagg())), legacy_kinds=True
        ),
        "older graph without its image": Case(
            ((CONFIG, graph_config()), (DynamoDeployment.KIND, disagg())), legacy_kinds=True
        ),
        "older component": Case(
            ((CONFIG, graph_config()), (NIM, image()), (DynamoNimDeployment.KIND, nim)), legacy_kinds=True
        ),
    }


def created(world: Running, case: Case) -> dict[str, set[str]]:
    """The names of the objects that exist beside those of the user, by the plural of their kind."""
    by_user = {(kind.plural, body["metadata"]["name"]) for kind, body in case.objects}
    found: dict[str, set[str]] = {}
    for collection, objects in world.server.storage.objects.items():
        plural = collection.rpartition("/")[2]
        names = {key.name for key in objects if (plural, key.name) not in by_user}
        if names and plural not in ("events", "customresourcedefinitions"):
            found[plural] = names
    return found


class Admission:
    """Refuses the objects of one kind, and a RoleBinding without its Role, as Kubernetes does."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._refused: tuple[str, Object] = "", {}

    def refuse(self, plural: str, answer: Object) -> None:
        self._refused = plural, answer

    def __call__(self, request: Request, target: Target) -> Object | None:
        plural, answer = self._refused
        if target.collection.endswith(f"/{plural}") and not target.subresource:
            return answer
        if target.collection != path_of(RoleBinding.KIND) or request.method == "DELETE":
            return None
        role = msgspec.json.decode(request.body or b"{}")["roleRef"]
        missing = Key(target.namespace, role["name"])
        if role["kind"] != Role.KIND.name or missing in self._storage.objects.get(ROLES, {}):
            return None
        # The resource is that of the binding, the name that of the role (measured on v1.36).
        text = f'rolebindings.rbac.authorization.k8s.io "{missing.name}" not found'
        return {**status(404, "NotFound", text), "details": {"name": missing.name}}
