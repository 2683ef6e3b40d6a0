"""The state of the cluster that validation depends on.

It comes from the caches, without a request. A kind that is not watched is None, which is not the same as
empty: nothing is reported about it.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.types.optional_apis import InferencePool
from dynamo_graphs.validation import Problem, ProblemKind, service_path
from dynamo_graphs.validation.endpoint_picker import TYPE

_NOT_INSTALLED = (
    f"InferencePool API group ({InferencePool.KIND.group}) is not available in the cluster. EPP requires "
    "the Gateway API Inference Extension to be installed. Please install the Gateway API "
    "Inference Extension before deploying EPP components"
)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What is known of the cluster and of the namespace of an object. None means: not known.

    Of the cluster: `pools_served` is whether it serves InferencePools; `pools_withheld`, if not empty, the
    text that the operator may not read them. `grove_served` decides the workload provider of a graph that has
    none recorded. `foreign_graphs` are the Dynamo namespaces, and `foreign_hosts` the hosts of Ingresses, of
    all other namespaces.

    Of the namespace: `claims` are the names of its PVCs, `base_models` those of its DynamoModels.
    `written_claims` has the access modes of some PVCs, `config_maps` the keys of some ConfigMaps.
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


def context_problems(graph: DynamoGraphDeployment, context: ClusterContext) -> Iterator[Problem]:
    """Report endpoint pickers in a cluster without InferencePools."""
    if context.pools_served is not False:
        return
    for key, service in sorted(graph.spec.services.items()):
        if service.component_type == TYPE:
            why = context.pools_withheld or _NOT_INSTALLED
            message = f"spec.services[{key}]: cannot deploy EPP component: {why}"
            path = f"{service_path(key)}.componentType"
            yield Problem(path, message, ProblemKind.NOT_SUPPORTED)
