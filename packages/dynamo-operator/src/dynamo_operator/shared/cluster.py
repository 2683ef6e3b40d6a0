"""What is read of a cluster: the optional APIs of other projects, their kinds, what is served.

`OPTIONAL_APIS` lists the kinds of each, and the chart value by which an administrator grants or withholds it.
Messages, `dynamoctl check` and the log name the value from here. The spec of a kind stays JSON text where
apply compares it as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import msgspec

from kube_runtime.types.kinds import PodTemplate, Service, ServiceAccount
from kube_runtime.types.meta import Condition, Key, Kind, Object, Resource, Struct

_GROUP, _VERSION = "grove.io", "v1alpha1"

CLIQUE_NAME = "grove.io/podclique"
"""Label of each pod on Grove: the name of its PodClique."""

POD_TEMPLATE_HASH = "grove.io/pod-template-hash"
"""Label of each pod on Grove: a hash of the template of its PodClique."""

REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
"""Label of each pod of a multinode replica on Grove."""


class PodCliqueSetStatus(Struct):
    """Observed state of a set; the hash identifies the template that Grove rolls out."""

    observed_generation: int | None = None
    current_generation_hash: str | None = None


class PodCliqueSet(Resource):
    """A PodCliqueSet; its spec stays JSON text, which apply compares as a whole."""

    KIND = Kind(_GROUP, _VERSION, "PodCliqueSet", "podcliquesets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodCliqueSetStatus = PodCliqueSetStatus()


class Scheduling(Struct):
    """The scheduler of the pods of a clique; "" for the default."""

    scheduler_name: str = ""


class CliqueSize(Struct):
    """Number of pods of a clique in a template, their quorum, and their scheduler."""

    replicas: int = 1
    min_available: int | None = None
    pod_spec: Scheduling = Scheduling()


class CliqueTemplate(Struct):
    """One clique in the template of a set: its size, and its annotations, which contain the last restart."""

    name: str
    annotations: dict[str, str] = {}
    spec: CliqueSize = CliqueSize()
    topology_constraint: Object | None = None


class ScalingGroupTemplate(Struct):
    """One scaling group in the template of a set: its size, and the names of its cliques."""

    name: str
    clique_names: tuple[str, ...] = ()
    replicas: int = 1
    min_available: int | None = None
    topology_constraint: Object | None = None


class PodCliqueSetTemplate(Struct):
    """The sizes in the template of a set, and its topology constraints."""

    cliques: tuple[CliqueTemplate, ...] = ()
    pod_clique_scaling_groups: tuple[ScalingGroupTemplate, ...] = ()
    topology_constraint: Object | None = None


class PodCliqueSetSpec(Struct):
    """The fields of a set's spec that scaling and rendering read."""

    template: PodCliqueSetTemplate = PodCliqueSetTemplate()


class ReplicasSpec(Struct):
    """Desired replicas; None until they are set."""

    replicas: int | None = None


class PodCliqueStatus(Struct):
    """Observed state of a clique; the hash identifies the template of the set."""

    observed_generation: int | None = None
    current_pod_clique_set_generation_hash: str | None = None
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0


# PodCliques and PodCliqueScalingGroups have only the fields that readiness and scaling read, so
# that changes of others do not trigger a reconcile.
class PodClique(Resource):
    """Pods of one template."""

    KIND = Kind(_GROUP, _VERSION, "PodClique", "podcliques")

    spec: ReplicasSpec = ReplicasSpec()
    status: PodCliqueStatus = PodCliqueStatus()


class PodCliqueScalingGroupStatus(Struct):
    """Observed state of a scaling group, each of whose replicas has one set of cliques."""

    observed_generation: int | None = None
    current_pod_clique_set_generation_hash: str | None = None
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class PodCliqueScalingGroup(Resource):
    """Cliques that scale together."""

    KIND = Kind(_GROUP, _VERSION, "PodCliqueScalingGroup", "podcliquescalinggroups")

    spec: ReplicasSpec = ReplicasSpec()
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()


class PodCliqueScale(Resource):
    """The scale subresource of a PodClique. Its own type keeps it out of the store of PodCliques."""

    KIND = PodClique.KIND

    spec: ReplicasSpec = ReplicasSpec()


class PodCliqueScalingGroupScale(Resource):
    """The scale subresource of a PodCliqueScalingGroup."""

    KIND = PodCliqueScalingGroup.KIND

    spec: ReplicasSpec = ReplicasSpec()


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


class OptionalApi(msgspec.Struct, frozen=True):
    """An optional API: title, types that the operator uses, and key under `optionalApis` in the chart."""

    title: str
    types: tuple[type[Resource], ...]
    key: str

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its types."""
        return tuple(type_.KIND for type_ in self.types)

    @property
    def value(self) -> str:
        """The chart value that grants access to it."""
        return f"dynamo-operator.optionalApis.{self.key}"


GROVE = OptionalApi("Grove", (PodCliqueSet, PodClique, PodCliqueScalingGroup), "grove")
KAI = OptionalApi("KAI scheduler", (Queue,), "kai")
_GROUPS = (LeaderWorkerSet, PodGroup)
LEADER_WORKER_SET = OptionalApi("LeaderWorkerSet with Volcano", _GROUPS, "leaderWorkerSet")
INFERENCE_POOL = OptionalApi("Inference extension", (InferencePool,), "inferencePool")
ISTIO = OptionalApi("Istio", (VirtualService,), "istio")

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
    return "; ".join(
        f"{api.title} is installed, but the operator may not read {', '.join(map(str, withheld[api]))}; "
        f"the chart value {api.value}=true grants it"
        for api in apis
        if withheld.get(api)
    )


class LiveTemplate(msgspec.Struct, frozen=True):
    """Fields of a clique or scaling group in a live PodCliqueSet that rendering must repeat; None if not set.

    `min_available`, `scheduler` and `topology` are immutable. `replicas` are scaled on the live object.
    `restart` is the id of the last restart; dropping it would restart the pods.
    """

    replicas: int | None = None
    min_available: int | None = None
    restart: str = ""
    scheduler: str | None = None
    topology: Object | None = None


class NamespaceDefaults(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the pods of a component get from their namespace where the spec names nothing.

    `image_pull_secrets` are the names of the pull secrets for the registry of the image; None if the user
    switched the search off. `service_account_name` is a marked ServiceAccount, "" for none.
    """

    image_pull_secrets: tuple[str, ...] | None = ()
    service_account_name: str = ""


LiveObjects: TypeAlias = Mapping[tuple[str, Key], Resource]
"""Live objects by kind and key."""


class Facts(msgspec.Struct, frozen=True):
    """The cluster as one component or graph sees it; objects and names are those of its namespace.

    `pull_secrets` are sorted names by registry host with port. `component_service_account` is the first of
    `component_service_accounts`, which have the label `nvidia.com/dynamo-component-pod=true`.
    `running_defaults` are those of the components, by name, whose pods keep what they have. `withheld` are
    the installed APIs that RBAC denies, with their forbidden kinds. `claims` are PVCs. `live_templates` are
    those of the graph's PodCliqueSet, in their order there. `missing_ssh_keys` is the Secret, as
    `namespace/name`, from which SSH keys should be copied and that does not exist, `ssh_keys_refusal` the
    answer of the API server when the operator tried to create it.
    """

    pull_secrets: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    component_service_account: str = ""
    component_service_accounts: frozenset[str] = frozenset()
    running_defaults: Mapping[str, NamespaceDefaults] = msgspec.field(default_factory=dict)
    lws_served: bool = False
    grove_served: bool = False
    kai_served: bool = False
    istio_served: bool = False
    inference_pools_served: bool = False
    withheld: Mapping[OptionalApi, tuple[Kind, ...]] = msgspec.field(default_factory=dict)
    kai_queues: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    live_templates: Mapping[str, LiveTemplate] = msgspec.field(default_factory=dict)
    missing_ssh_keys: str = ""
    ssh_keys_refusal: str = ""


def registry_of_image(image: str) -> str:
    """The registry host of an image, with its port; `docker.io` for a name without a host."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first.lower() == "localhost")
    return _registry(first) if is_host else "docker.io"


def registry_of_credential(server: str) -> str:
    """The registry host of a key under `auths` in a Docker configuration, such as `https://h/v1/`."""
    return _registry(server.split("://", 1)[-1].partition("/")[0])


def _registry(host: str) -> str:
    lowered = host.lower()
    return "docker.io" if lowered in ("index.docker.io", "registry-1.docker.io") else lowered


class _Secret(Resource):
    """A Secret. `data` holds credentials or a private key: never log it. `repr` omits it."""

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}

    def __repr__(self) -> str:
        """The kind and the name, without the data."""
        return f"{type(self).__name__}({self.key})"


class PullSecret(_Secret):
    """A Secret of type `kubernetes.io/dockerconfigjson`, watched by that; reduced to registry hosts."""


class SshKeys(_Secret):
    """The Secret with the SSH keys that the pods of one group share. Watched by its name."""

    type: str = ""


class SshKeysCopy(SshKeys):
    """A copy of those keys in another namespace; a type of its own, because each type has one watch."""


class ServingSecret(_Secret):
    """The Secret with the certificate of the webhooks. Watched by its name."""


class MetricsSecret(ServingSecret):
    """The Secret with the certificate of the metrics server; a type of its own for its own watch."""


# A label selector has no "or", so a second group of objects of a kind requires a second watch, with
# a type of its own.
class ModelService(Service):
    """The headless Service of a base model, which the components that serve it share."""


class PodServiceAccount(ServiceAccount):
    """A ServiceAccount that an administrator labelled for the pods of components."""
