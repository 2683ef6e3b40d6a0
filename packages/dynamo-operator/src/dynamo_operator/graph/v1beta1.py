"""DynamoGraphDeployment in v1beta1. The operator computes with v1alpha1."""

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

from dynamo_operator.component import v1beta1 as components
from dynamo_operator.component.api import GROUP, TOPOLOGY_DOMAIN_PATTERN
from dynamo_operator.component.v1beta1 import VERSION, ComponentSpec, ReplicaStatus
from dynamo_operator.features.experimental.api import CheckpointStatus
from dynamo_operator.graph import api
from dynamo_operator.graph.api import (
    MOST_SERVICES,
    GraphExperimental,
    PlacementStatus,
    Restart,
    RestartStatus,
    SharedGraphStatus,
)
from dynamo_operator.names import LABEL_LIMIT
from kube_runtime.crd import Field, Rule, Rules, Transition, Transitions
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Struct

MOST_COMPONENTS = MOST_SERVICES


class Failover(components.Failover):
    """Engines that stand by for the active one and share its GPU memory."""

    num_shadows: Annotated[
        int, Field("Number of engines that stand by.", minimum=1, maximum=1, format="int32", default=1)
    ] = 1


class Experimental(components.Experimental):
    """Experimental features of a component."""

    failover: Annotated[Failover | None, Field("Engines that stand by for the active one.")] = None


class Component(ComponentSpec):
    """One component of a graph."""

    name: Annotated[
        str,
        Field(
            "Name of the component, unique in its graph.",
            min_length=1,
            max_length=LABEL_LIMIT,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$",
            required=True,
        ),
    ] = ""
    type: Annotated[
        Literal["frontend", "worker", "prefill", "decode", "planner", "epp"] | None,
        Field("Role of the component, which decides on ports, probes and environment."),
    ] = None
    experimental: Annotated[Experimental | None, Field("Experimental features.")] = None


def _pickers(components: list[Any]) -> int:
    return sum(isinstance(component, dict) and component.get("type") == "epp" for component in components)


def _most_alike(components: list[Any]) -> int:
    names = (str(component.get("name", "")) for component in components if isinstance(component, dict))
    return max(Counter(name.lower() for name in names).values(), default=0)


# The API server evaluates them at each write, also of a status. To read a field of a component it copies the
# declarations of all its fields, 13 kB, so each is read once.
_COMPONENT_RULES: Rules = (
    Rule(
        "self.filter(c, c.?type.orValue('') == 'epp').size() <= 1",
        "at most one component may have type epp",
        lambda components: _pickers(components) <= 1,
    ),
    Rule(
        "[self.map(c, c.name.lowerAscii())]"
        ".all(names, names.all(name, names.indexOf(name) == names.lastIndexOf(name)))",
        "component names must be unique case-insensitively",
        lambda components: _most_alike(components) <= 1,
    ),
)


class TopologyConstraint(Struct):
    """A topology domain that all pods of a graph share."""

    cluster_topology_name: Annotated[
        str, Field("Name of the cluster topology that has the domain.", min_length=1)
    ]
    pack_domain: Annotated[str | None, Field("Domain, such as `zone`.", pattern=TOPOLOGY_DOMAIN_PATTERN)] = (
        None
    )


RESTART_ON_CREATE = Transition(
    "oldSelf.hasValue() || !has(self.restart)",
    "spec.restart must be unset on create; set spec.restart.id after creation to request a restart",
    on_create=True,
)


class DynamoGraphDeploymentSpec(api.SharedGraphSpec):
    """The components of a graph and what they share."""

    TRANSITIONS: ClassVar[Transitions] = (RESTART_ON_CREATE,)

    annotations: Annotated[dict[str, str], Field("Annotations of every object of the graph.")] = {}
    labels: Annotated[dict[str, str], Field("Labels of every object of the graph.")] = {}
    components: Annotated[
        tuple[Component, ...],
        Field(
            "The components of the graph.",
            max_items=MOST_COMPONENTS,
            list_keys=("name",),
            rules=_COMPONENT_RULES,
        ),
    ] = ()
    env: Annotated[
        tuple[Object, ...],
        Field(
            "Environment variables of every component; a variable of the component itself wins.",
            embeds="EnvVar",
            list_type="atomic",
        ),
    ] = ()
    restart: Annotated[Restart | None, Field("Restarts the components on demand.")] = None
    topology_constraint: Annotated[
        TopologyConstraint | None, Field("Topology domain into which the graph is packed.")
    ] = None
    experimental: Annotated[GraphExperimental | None, Field("Experimental settings.")] = None
    replicas: Annotated[
        int | None,
        Field(
            "Factor on the replicas of every worker that no scaling adapter manages; what `kubectl scale` "
            "sets. Left out, it is 1; with 0 those components have no pods.",
            minimum=0,
            format="int32",
        ),
    ] = None


class RollingUpdateStatus(Struct):
    """Progress of a managed rolling update of the workers."""

    phase: Annotated[
        Literal["Pending", "InProgress", "Completed", "Failed", ""] | None, Field("How far it is.")
    ] = None
    start_time: Annotated[str | None, Field("When it began.", format="date-time")] = None
    end_time: Annotated[str | None, Field("When it was complete.", format="date-time")] = None
    updated_components: Annotated[
        tuple[str, ...], Field("Components whose pods are all of the new revision.")
    ] = ()
    from_hash: Annotated[str | None, Field("Previous revision of the workers; empty for the first.")] = None
    to_hash: Annotated[str | None, Field("Revision of the workers that is rolled out.")] = None


class DynamoGraphDeploymentStatus(SharedGraphStatus):
    """Observed state of a graph."""

    state: Annotated[
        Literal["initializing", "pending", "successful", "failed"],
        Field("Summary in one word.", default="initializing", required=True),
    ] = "initializing"
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the graph, one entry per type.", list_keys=("type",)),
    ] = ()
    components: Annotated[dict[str, ReplicaStatus], Field("Replica counts of each component.")] = {}
    restart: Annotated[RestartStatus | None, Field("Progress of the last requested restart.")] = None
    checkpoints: Annotated[dict[str, CheckpointStatus], Field("Checkpoint of each component.")] = {}
    rolling_update: Annotated[
        RollingUpdateStatus | None, Field("Progress of the latest rolling update of the workers.")
    ] = None
    placement: Annotated[PlacementStatus | None, Field("How well the pods are placed.")] = None


class DynamoGraphDeployment(Resource):
    """An inference graph: frontends, routers, workers and planners that belong together."""

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeployment", "dynamographdeployments")
    DEFINITION: ClassVar = api.DynamoGraphDeployment.DEFINITION

    spec: Annotated[DynamoGraphDeploymentSpec, Field("Desired state of the graph.")] = (
        DynamoGraphDeploymentSpec()
    )
    status: Annotated[DynamoGraphDeploymentStatus, Field("Observed state of the graph.")] = (
        DynamoGraphDeploymentStatus()
    )
