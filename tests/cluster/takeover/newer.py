"""What the Go operator of the 1.x line leaves behind: recorded objects, in the version that it stores."""

import json
from dataclasses import dataclass

from cluster.takeover.earlier import MANAGER, kind_of
from cluster.world import World
from conformance.newer_recordings import SOURCES, NewerCase, newer_cases
from dynamo_operator import labels
from dynamo_operator.component.v1beta1 import DynamoComponentDeployment
from dynamo_operator.features.scaling.v1beta1 import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.v1beta1 import DynamoGraphDeployment
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodCliqueSet
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind, Object

GRAPH, COMPONENT = DynamoGraphDeployment.KIND, DynamoComponentDeployment.KIND
ADAPTER = DynamoGraphDeploymentScalingAdapter.KIND
_KINDS = {kind.name: kind for kind in (GRAPH, COMPONENT, ADAPTER)}
_LEFT_OUT = ("Secret", "PersistentVolumeClaim")
_REPEATED = {
    kind.name: kind for kind in (COMPONENT, Deployment.KIND, LeaderWorkerSet.KIND, PodCliqueSet.KIND)
}


def case_of(name: str) -> NewerCase:
    return next(case for source in SOURCES for case in newer_cases(source) if case.name == name)


@dataclass(frozen=True, slots=True)
class NewerGoOperator:
    """The objects of one recorded case, in the namespace of the test."""

    world: World
    case: NewerCase
    mode: str = "none"

    def has_run(self) -> None:
        """Create all that the Go operator left, owners first, by its field manager and with its statuses."""
        ranks = {GRAPH.name: 0, COMPONENT.name: 1}
        for body in sorted(self._objects(), key=lambda body: ranks.get(body["kind"], 2)):
            self._create(body)

    def reconciles_again(self) -> None:
        """Write its specs over those of components and workloads, as it does where its hash is missing.

        By PUT, with the two annotations that show its last write; nothing else changes.
        """
        for theirs in self._objects():
            if (kind := _REPEATED.get(theirs["kind"])) is None:
                continue
            live = self.world.read(kind, theirs["metadata"]["name"])
            own = {
                key: text
                for key, text in theirs["metadata"]["annotations"].items()
                if key in (labels.LAST_APPLIED_HASH, labels.LAST_APPLIED_GENERATION)
            }
            annotations = {**live["metadata"].get("annotations", {}), **own}
            metadata = {**live["metadata"], "annotations": annotations}
            self.world.replace(kind, {**live, "metadata": metadata, "spec": theirs["spec"]}, MANAGER)

    def _objects(self) -> list[Object]:
        """What it left, in the namespace of the test."""
        bodies = [body for body in self.case.after(self.mode, 0).objects if body["kind"] not in _LEFT_OUT]
        text = json.dumps(bodies).replace(self.case.namespace, self.world.namespace)
        placed: list[Object] = json.loads(text)
        for body in placed:
            if body["kind"] == LeaderWorkerSet.KIND.name:
                del body["spec"]["rolloutStrategy"]  # its own webhook had not run when it was recorded
        return placed

    def _create(self, body: Object) -> None:
        for address in ("clusterIP", "clusterIPs"):
            if "allocated" in str(body.get("spec", {}).get(address)):
                del body["spec"][address]
        status, metadata = body.pop("status", None), body["metadata"]
        metadata["namespace"] = self.world.namespace
        for owner in metadata.get("ownerReferences", ()):
            owner["uid"] = self.world.read(_KINDS[owner["kind"]], owner["name"])["metadata"]["uid"]
        self.world.create(kind_of(body), body, manager=MANAGER)
        if body["kind"] in _KINDS and status:
            for condition in status.get("conditions", ()):
                condition.setdefault("lastTransitionTime", "2026-08-20T12:00:00Z")  # not recorded
            kind: Kind = _KINDS[body["kind"]]
            self.world.patch(kind, metadata["name"], {"status": status}, "status")
