"""The APIs of other projects that the operator uses where they are installed.

The one list of them: which kinds each consists of, and the chart value by which an administrator grants or
withholds it. Messages, `dynamoctl check` and the log name the value from here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.inference import InferencePool
from dynamo_graphs.types.istio import VirtualService
from dynamo_graphs.types.kai import Queue
from dynamo_graphs.types.leaderworkerset import LeaderWorkerSet
from dynamo_graphs.types.volcano import PodGroup
from kube_runtime.kind import Kind

_VALUES = "dynamo-operator.optionalApis"


@dataclass(frozen=True, slots=True)
class OptionalApi:
    """Another project: its name, its kinds that we use, and its key below `optionalApis` in the chart."""

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
    """The chart value that grants access to a kind, for messages; "" if its API is not optional."""
    values = (api.value for api in OPTIONAL_APIS if kind in api.kinds)
    return next((f"the chart value {value}=true" for value in values), "")


def withheld_text(
    withheld: Mapping[OptionalApi, Sequence[Kind]], apis: Iterable[OptionalApi] = OPTIONAL_APIS
) -> str:
    """A sentence for each of these APIs that is installed and may not be read; "" if none is.

    `withheld` are such APIs with their forbidden kinds.
    """
    return "; ".join(_sentence(api, withheld[api]) for api in apis if withheld.get(api))


def _sentence(api: OptionalApi, forbidden: Sequence[Kind]) -> str:
    kinds = ", ".join(str(kind) for kind in forbidden)
    return (
        f"{api.title} is installed, but the operator may not read {kinds}; "
        f"the chart value {api.value}=true grants it"
    )
