"""What only the cluster knows: one rule, and the facts that warnings are about.

Nothing is requested; everything comes from the caches. A kind without a watch is None, which is not the
same as empty: ignorance allows no conclusion.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.types.optional_apis import InferencePool
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.endpoint_picker import TYPE
from dynamo_graphs.validation.graph import service_path

_NOT_INSTALLED = (
    f"InferencePool API group ({InferencePool.KIND.group}) is not available in the cluster. EPP requires "
    "the Gateway API Inference Extension to be installed. Please install the Gateway API "
    "Inference Extension before deploying EPP components"
)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """The namespace of an object: its PVCs and the base models of its DynamoModels, by name.

    `grove_served` decides the workload provider of a graph without one, as for its controller.
    `foreign_graphs` are the Dynamo namespaces and `foreign_hosts` the hosts of Ingresses of all other
    namespaces. None means: not known. `pools_withheld` says that the API of InferencePools is installed and
    may not be read; "" means that it is not so. `written_claims` has the access modes of PVCs, and
    `config_maps` the keys of ConfigMaps, that are known to be there; there may be others.
    """

    pools_served: bool | None = None
    pools_withheld: str = ""
    grove_served: bool = False
    claims: Container[str] | None = None
    base_models: Container[str] | None = None
    foreign_graphs: Container[str] | None = None
    foreign_hosts: Container[str] | None = None
    written_claims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    config_maps: Mapping[str, Container[str]] = field(default_factory=dict)


UNKNOWN = ClusterContext()


def context_problems(
    graph: DynamoGraphDeployment, surroundings: ClusterContext
) -> Iterator[Problem]:
    """What the graph needs and the cluster does not serve."""
    if surroundings.pools_served is not False:
        return
    for key, service in sorted(graph.spec.services.items()):
        if service.component_type == TYPE:
            why = surroundings.pools_withheld or _NOT_INSTALLED
            message = f"spec.services[{key}]: cannot deploy EPP component: {why}"
            path = f"{service_path(key)}.componentType"
            yield Problem(path, message, ProblemKind.NOT_SUPPORTED)
