"""The APIs of other projects that the operator uses where they are installed, and their kinds.

`OPTIONAL_APIS` lists the kinds of each, and the chart value by which an administrator grants or withholds it.
Messages, `dynamoctl check` and the log name the value from here. The spec of a kind stays JSON text where
apply compares it as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from kube_runtime.kind import Kind
from kube_runtime.types.apps import PodTemplate
from kube_runtime.types.meta import Condition, Resource, Struct


class InferencePool(Resource):
    """InferencePool of the Gateway API inference extension."""

    KIND = Kind("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class VirtualService(Resource):
    """VirtualService of Istio."""

    KIND = Kind("networking.istio.io", "v1beta1", "VirtualService", "virtualservices")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class Queue(Resource):
    """Queue of the KAI scheduler. The operator only checks that it exists."""

    KIND = Kind("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False)
    METADATA_ONLY: ClassVar[bool] = True


SET_NAME = "leaderworkerset.sigs.k8s.io/name"
"""Label of everything below a LeaderWorkerSet; the value is the name of the set."""


class LeaderWorkerTemplate(Struct):
    """The pod template of the leaders, which readiness compares."""

    leader_template: PodTemplate = PodTemplate()


class LeaderWorkerSetSpec(Struct):
    """The fields of a LeaderWorkerSet's spec that readiness depends on."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()


class LeaderWorkerSetStatus(Struct):
    """Observed state of a LeaderWorkerSet; a replica is a whole group.

    `observed_generation` is None in releases up to 0.7, which do not report it.
    """

    observed_generation: int | None = None
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class LeaderWorkerSet(Resource):
    """Groups of one leader and its workers."""

    KIND = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()


class PodGroupStatus(Struct):
    """Scheduling conditions that Volcano reports."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(Resource):
    """PodGroup of Volcano: pods that are scheduled together or not at all."""

    KIND = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodGroupStatus = PodGroupStatus()


_VALUES = "dynamo-operator.optionalApis"


@dataclass(frozen=True, slots=True)
class OptionalApi:
    """An optional API: title, kinds that the operator uses, and key under `optionalApis` in the chart."""

    title: str
    kinds: tuple[Kind, ...]
    key: str

    @property
    def value(self) -> str:
        """The chart value that grants access to it."""
        return f"{_VALUES}.{self.key}"


GROVE = OptionalApi(
    "Grove", (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND), "grove"
)
KAI = OptionalApi("KAI scheduler", (Queue.KIND,), "kai")
LEADER_WORKER_SET = OptionalApi(
    "LeaderWorkerSet with Volcano", (LeaderWorkerSet.KIND, PodGroup.KIND), "leaderWorkerSet"
)
INFERENCE_POOL = OptionalApi("Inference extension", (InferencePool.KIND,), "inferencePool")
ISTIO = OptionalApi("Istio", (VirtualService.KIND,), "istio")

OPTIONAL_APIS = (GROVE, KAI, LEADER_WORKER_SET, INFERENCE_POOL, ISTIO)


def granted_by(kind: Kind) -> str:
    """The chart value that grants access to a kind, for messages; "" for kinds of no optional API."""
    values = (api.value for api in OPTIONAL_APIS if kind in api.kinds)
    return next((f"the chart value {value}=true" for value in values), "")


def withheld_text(
    withheld: Mapping[OptionalApi, Sequence[Kind]], apis: Iterable[OptionalApi] = OPTIONAL_APIS
) -> str:
    """A sentence for each of these APIs that is installed and that RBAC denies; "" for none.

    `withheld` maps such APIs to their forbidden kinds.
    """
    return "; ".join(_sentence(api, withheld[api]) for api in apis if withheld.get(api))


def _sentence(api: OptionalApi, forbidden: Sequence[Kind]) -> str:
    kinds = ", ".join(str(kind) for kind in forbidden)
    return (
        f"{api.title} is installed, but the operator may not read {kinds}; "
        f"the chart value {api.value}=true grants it"
    )
