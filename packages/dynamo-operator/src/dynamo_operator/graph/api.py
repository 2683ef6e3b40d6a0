"""DynamoGraphDeployment: a whole inference graph."""

from typing import Annotated, ClassVar, Literal

import msgspec

from dynamo_operator.component.api import (
    CATEGORIES,
    FRAMEWORKS,
    GROUP,
    TOPOLOGY_DOMAIN_PATTERN,
    VERSION,
    ComponentSpec,
    ServiceReplicaStatus,
)
from dynamo_operator.features.experimental.api import CheckpointStatus
from dynamo_operator.names import SUBDOMAIN_LIMIT, GroveNames, grove_names, present_set
from kube_runtime.crd import (
    AGE,
    Column,
    Definition,
    Field,
    Quantity,
    Rule,
    Rules,
    Scale,
    Transitions,
    immutable,
)
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct

MOST_SERVICES = 25
"""Most services of a graph, as in the CRD of the Go operator."""


def _is_complete_claim(claim: Object) -> bool:
    """Whether the entry has all fields that creating a PVC requires."""
    needed = ("size", "storageClass", "volumeAccessMode")
    return not claim.get("create") or all(name in claim for name in needed)


class PersistentVolumeClaimSpec(Struct):
    """A PersistentVolumeClaim that the services of a graph may mount."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!has(self.create) || self.create == false || "
            "(has(self.size) && has(self.storageClass) && has(self.volumeAccessMode))",
            "When create is true, size, storageClass, and volumeAccessMode are required",
            _is_complete_claim,
        ),
    )

    name: Annotated[str, Field("Name of the PersistentVolumeClaim, which services mount it by.")]
    create: Annotated[
        bool, Field("Create the PVC if it does not exist. Otherwise it must exist already.")
    ] = False
    storage_class: Annotated[str | None, Field("Storage class of the PVC; needed when `create` is true.")] = (
        None
    )
    size: Annotated[Quantity | None, Field("Size of the volume; needed when `create` is true.")] = None
    volume_access_mode: Annotated[
        str | None, Field("Access mode, such as `ReadWriteMany`; needed when `create` is true.")
    ] = None
    retain: Annotated[
        bool,
        Field(
            "Keep the PVC and the data on its volume when the graph is deleted. Left out, a PVC that "
            "the graph created is deleted with it."
        ),
    ] = False


class RestartStrategy(Struct):
    """The order in which services restart."""

    type: Annotated[
        Literal["Sequential", "Parallel"],
        Field(
            "`Sequential` restarts a service when the one before it is ready again, `Parallel` all at once.",
            default="Sequential",
        ),
    ] = "Sequential"
    order: Annotated[
        tuple[str, ...],
        Field(
            "All services in the order in which they restart; not with `Parallel`. Left out, they go by name."
        ),
    ] = ()


class Restart(Struct):
    """A request to restart the graph; a new id starts a new restart."""

    id: Annotated[
        str, Field("Any text, such as a time. Changing it restarts the services of the graph.", min_length=1)
    ]
    strategy: Annotated[RestartStrategy | None, Field("Order in which the services restart.")] = None


class RestartStatus(Struct):
    """Progress of a restart."""

    observed_id: Annotated[str | None, Field("The `spec.restart.id` that this status describes.")] = (
        msgspec.field(name="observedID", default=None)
    )
    phase: Annotated[str | None, Field("`Restarting`, `Completed` or `Superseded`.")] = None
    in_progress: Annotated[tuple[str, ...], Field("Services that are restarting at this moment.")] = ()


class GraphTopologyConstraint(Struct):
    """A topology domain that all pods of a graph share."""

    topology_profile: Annotated[str, Field("Name of the cluster topology that has the domain.", min_length=1)]
    pack_domain: Annotated[str | None, Field("Domain, such as `zone`.", pattern=TOPOLOGY_DOMAIN_PATTERN)] = (
        None
    )


_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


class KvTransferPolicy(Struct):
    """Between which workers the KV cache may be transferred."""

    RULES: ClassVar[Rules] = (
        Rule(
            "has(self.labelKey) != has(self.clusterTopologyName)",
            "exactly one of labelKey or clusterTopologyName is required",
            lambda policy: ("labelKey" in policy) != ("clusterTopologyName" in policy),
        ),
        Rule(
            "!has(self.enforcement) || self.enforcement != 'preferred' || has(self.preferredWeight)",
            "preferredWeight is required when enforcement is preferred",
            lambda policy: policy.get("enforcement") != "preferred" or "preferredWeight" in policy,
        ),
        Rule(
            "!has(self.preferredWeight) || (has(self.enforcement) && self.enforcement == 'preferred')",
            "preferredWeight may only be set when enforcement is preferred",
            lambda policy: "preferredWeight" not in policy or policy.get("enforcement") == "preferred",
        ),
    )

    domain: Annotated[
        str, Field("Domain within which workers transfer, such as `rack`.", pattern=TOPOLOGY_DOMAIN_PATTERN)
    ]
    cluster_topology_name: Annotated[
        str | None, Field("Cluster topology that names the node label of the domain.", min_length=1)
    ] = None
    label_key: Annotated[
        str | None,
        Field(
            "Node label whose value is the domain of a node.",
            min_length=1,
            max_length=317,
            pattern=rf"^(({_LABEL})(\.{_LABEL})*/)?([A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?)$",
            rules=(
                Rule(
                    "!self.contains('/') || self.indexOf('/') <= 253",
                    "labelKey prefix must be 253 characters or less",
                    lambda key: str(key).find("/") <= SUBDOMAIN_LIMIT,
                ),
            ),
        ),
    ] = None
    enforcement: Annotated[
        Literal["required", "preferred"],
        Field("Whether transfers out of the domain are forbidden or cost more.", default="required"),
    ] = "required"
    preferred_weight: Annotated[
        float | None, Field("Weight of the domain with `preferred`.", minimum=0, maximum=1)
    ] = None


class GraphExperimental(Struct):
    """Experimental settings of a graph."""

    kv_transfer_policy: Annotated[
        KvTransferPolicy | None, Field("Between which workers the KV cache may be transferred.")
    ] = None


class SharedGraphSpec(Struct):
    """Fields of a graph that are the same in both versions."""

    backend_framework: Annotated[
        str | None,
        Field(
            "Backend that the workers run. Left out, it is read from each worker's command.",
            options=FRAMEWORKS,
        ),
    ] = None
    priority_class_name: Annotated[str | None, Field("PriorityClass of the pods; of graphs on Grove.")] = None
    progress_deadline_seconds: Annotated[
        int | None,
        Field(
            "Seconds without a newly ready replica before the graph is reported as stalled. Nothing "
            "is rolled back. Left out, it is 7800.",
            minimum=1,
            format="int32",
        ),
    ] = None


class DynamoGraphDeploymentSpec(SharedGraphSpec):
    """The services of a graph and what they share."""

    TRANSITIONS: ClassVar[Transitions] = (immutable("backendFramework", "spec.backendFramework"),)

    pvcs: Annotated[
        tuple[PersistentVolumeClaimSpec, ...],
        Field("PersistentVolumeClaims that services may mount, with unique names.", max_items=100),
    ] = ()
    services: Annotated[
        dict[str, ComponentSpec], Field("The components of the graph, by name.", max_properties=MOST_SERVICES)
    ] = {}
    envs: Annotated[
        tuple[Object, ...],
        Field(
            "Environment variables of every service; a variable of the service itself wins.", embeds="EnvVar"
        ),
    ] = ()
    restart: Annotated[Restart | None, Field("Restarts the services on demand.")] = None
    replicas: Annotated[
        int | None,
        Field(
            "Factor on the replicas of every worker service that no scaling adapter manages; what "
            "`kubectl scale` sets. Left out, it is 1; with 0 those services have no pods.",
            minimum=0,
            format="int32",
        ),
    ] = None
    labels: Annotated[
        dict[str, str],
        Field(
            "Labels of every object of the graph, pods included. Those of a service win, and on "
            "pods those of `extraPodMetadata`."
        ),
    ] = {}
    annotations: Annotated[
        dict[str, str],
        Field(
            "Annotations of every object of the graph, pods included. Those of a service win, and "
            "on pods those of `extraPodMetadata`."
        ),
    ] = {}
    topology_constraint: Annotated[
        Object | None, Field("Topology domain into which the graph is packed.", shape=GraphTopologyConstraint)
    ] = None
    experimental: Annotated[Object | None, Field("Experimental settings.", shape=GraphExperimental)] = None


class RollingUpdateStatus(Struct):
    """Progress of a managed rolling update of the workers."""

    phase: Annotated[str | None, Field("`Pending`, `InProgress` or `Completed`.")] = None
    start_time: Annotated[str | None, Field("When it began.", format="date-time")] = None
    end_time: Annotated[str | None, Field("When it was complete.", format="date-time")] = None
    updated_services: Annotated[
        tuple[str, ...], Field("Services whose pods are all of the new revision.")
    ] = ()
    from_hash: Annotated[str | None, Field("Previous revision of the workers; empty for the first.")] = None
    to_hash: Annotated[str | None, Field("Revision of the workers that is rolled out.")] = None


class ProgressStatus(Struct):
    """Most replicas that were ready during the current rollout."""

    ready_replicas: Annotated[
        int, Field("Most ready replicas of the newest spec so far.", minimum=0, format="int32")
    ]
    since: Annotated[str, Field("When that was reached first.", format="date-time")]
    observed_generation: Annotated[
        int, Field("Generation of the spec when that was reached first.", format="int64")
    ] = 0
    spec_hash: Annotated[
        str | None, Field("Hash of the spec that this describes, without replica counts.")
    ] = None


class PlacementStatus(Struct):
    """How well the pods of a graph are placed."""

    score: Annotated[float | None, Field("Quality of the placement.", minimum=0, maximum=1)] = None
    state: Annotated[
        Literal["Reported", "Partial", "Unsupported", "Unknown"] | None,
        Field("Whether the quality is known."),
    ] = None


class SharedGraphStatus(Status):
    """Fields of a graph's status that are the same in both versions; the Go operator has the first only."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    progress: Annotated[
        ProgressStatus | None, Field("Progress of the current rollout; removed when the graph is ready.")
    ] = None
    replicas: Annotated[
        int | None,
        Field(
            "The factor that the worker services have reached, for the scale subresource.",
            minimum=0,
            format="int32",
        ),
    ] = None
    selector: Annotated[
        str | None, Field("Label selector of the pods of those services, as text, for the scale subresource.")
    ] = None
    backend_framework: Annotated[
        str | None, Field("Backend that the workers run, as declared or as read from their commands.")
    ] = None
    ready_services: Annotated[str | None, Field("Ready services of all services, such as `3/4`.")] = None
    gpus: Annotated[
        int | None,
        Field(
            "GPUs that the graph requests: nodes times GPUs times replicas of each service.",
            minimum=0,
            format="int32",
        ),
    ] = None


class DynamoGraphDeploymentStatus(SharedGraphStatus):
    """Observed state of a graph."""

    state: Annotated[
        str | None, Field("Summary in one word: `initializing`, `pending`, `successful` or `failed`.")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...], Field("Current conditions of the graph, one entry per type.")
    ] = ()
    services: Annotated[dict[str, ServiceReplicaStatus], Field("Replica counts of each service.")] = {}
    restart: Annotated[RestartStatus | None, Field("Progress of the last requested restart.")] = None
    rolling_update: Annotated[
        RollingUpdateStatus | None, Field("Progress of the latest rolling update of the workers.")
    ] = None
    checkpoints: Annotated[
        dict[str, Object],
        Field("Checkpoint of each service; not written by this operator.", shape=CheckpointStatus),
    ] = {}
    placement: Annotated[
        Object | None, Field("Placement of the pods; not written by this operator.", shape=PlacementStatus)
    ] = None


class DynamoGraphDeployment(Resource):
    """An inference graph: frontends, routers, workers and planners that belong together."""

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeployment", "dynamographdeployments")
    DEFINITION: ClassVar = Definition(
        short_names=("dgd",),
        categories=CATEGORIES,
        columns=(
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Backend", ".status.backendFramework"),
            AGE,
            Column("State", ".status.state"),
            Column("Services", ".status.readyServices"),
            Column("GPUs", ".status.gpus", "integer"),
            Column("Progress", '.status.conditions[?(@.type=="Progressing")].reason', priority=1),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
        ),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    )

    spec: Annotated[DynamoGraphDeploymentSpec, Field("Desired state of the graph.")] = (
        DynamoGraphDeploymentSpec()
    )
    status: Annotated[DynamoGraphDeploymentStatus, Field("Observed state of the graph.")] = (
        DynamoGraphDeploymentStatus()
    )


def grove_names_of(graph: DynamoGraphDeployment) -> GroveNames:
    """The names of a graph's PodCliqueSet and of the services within it."""
    are_multinode = {key: service.nodes > 1 for key, service in graph.spec.services.items()}
    return grove_names(graph.metadata.name, are_multinode, present_set(graph))
