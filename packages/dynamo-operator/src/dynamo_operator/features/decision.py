"""What a reconcile of a graph is made of: what it reads, what it decides, and who adds to the decision.

The plans of features are here, beside the decision that they are part of; how each is made is in `features`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.service import Observed, ServiceView
from dynamo_operator.features.grove.status import GroveMember
from dynamo_operator.features.rollouts.plan import Rollout
from dynamo_operator.features.rollouts.revisions import Revisions
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus, RestartStatus
from dynamo_operator.names import COMPONENT
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveObjects
from dynamo_operator.shared.conditions import Stop
from dynamo_operator.takeover.plan import Origin
from kube_runtime.apply.result import Applied, Blocked, Cause, Change, Verb
from kube_runtime.errors import DecodeError
from kube_runtime.types.kinds import ControllerRevision, Pod
from kube_runtime.types.meta import Condition, Key, Metadata, Object, Resource

Adapters: TypeAlias = Mapping[str, Adapter]
"""By name: those that a graph controls, and foreign ones that occupy a name that it needs."""


class AdapterInputs(msgspec.Struct, frozen=True):
    """The adapters of a graph: `present` are those that it controls or whose names it needs.

    `unreadable` cannot be decoded. `refused` are names whose creation the API server refused a moment ago.
    """

    present: Adapters = msgspec.field(default_factory=dict)
    unreadable: Mapping[str, DecodeError] = msgspec.field(default_factory=dict[str, DecodeError])
    refused: frozenset[str] = frozenset()


class GraphInputs(msgspec.Struct, frozen=True):
    """Everything beside the graph and the settings that a decision depends on; by default an empty cluster.

    `live` are the objects that the graph owns, `components` its DynamoComponentDeployments, `former` its
    ControllerRevisions, `services` the observed state of its services. `leaving` counts the pods that have
    not ended, by component. `members` and `pods` are its services on Grove and their pods, by service.
    `set_origin` is that of an earlier operator's PodCliqueSet, and `present_set` its name if it is not ours.
    `ssh_keys` are the copies that it needs, of `ssh_key_types`. `in_v1beta1` is the version of its author.
    """

    facts: Facts
    live: LiveObjects = msgspec.field(default_factory=dict)
    provider: str = COMPONENT
    services: Observed = msgspec.field(default_factory=dict)
    components: tuple[DynamoComponentDeployment, ...] = ()
    former: tuple[ControllerRevision, ...] = ()
    leaving: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    adapters: AdapterInputs = msgspec.field(default_factory=AdapterInputs)
    members: Mapping[str, GroveMember] = msgspec.field(default_factory=dict[str, GroveMember])
    pods: Mapping[str, tuple[Pod, ...]] = msgspec.field(default_factory=dict[str, tuple[Pod, ...]])
    set_origin: Origin = Origin.OUTDATED
    present_set: str = ""
    ssh_keys: tuple[Object, ...] = ()
    ssh_key_types: tuple[type[Resource], ...] = ()
    in_v1beta1: bool = False


class Delete(msgspec.Struct, frozen=True):
    """The deletion of an object. `checks_owner`: only if the cache has the newest state of its owner."""

    live: Resource
    change: Change
    checks_owner: bool = True


class Patch(msgspec.Struct, frozen=True):
    """A merge patch of an object, or of its subresource of type `type_`."""

    live: Resource
    body: Object
    change: Change
    type_: type[Resource]
    subresource: str = ""


Write: TypeAlias = Delete | Patch
"""A write beside the objects that an owner applies. A lost one is repeated by the next reconcile."""


def scaling(
    live: Resource, replicas: int, cause: Cause, type_: type[Resource], subresource: str = "scale"
) -> Patch:
    """Scale a live object. `type_` is the type of the subresource."""
    change = Change(Verb.SCALE, type_.KIND.name, live.metadata.name, f"{cause}: {replicas} replicas")
    return Patch(live, {"spec": {"replicas": replicas}}, change, type_, subresource)


class History(msgspec.Struct, frozen=True):
    """The changes to the stored revisions of a graph's spec; none in most reconciles.

    `created` is a new revision. `renewed` is an old one whose spec is current again, with its new number.
    `outdated` are to be deleted, the oldest first.
    """

    created: Object | None = None
    renewed: tuple[ControllerRevision, int] | None = None
    outdated: tuple[ControllerRevision, ...] = ()


class AdapterPlan(msgspec.Struct, frozen=True):
    """`desired` should exist, `orphans` should be deleted; `replicas` are what adapters set, by service."""

    desired: tuple[Object, ...] = ()
    orphans: tuple[Adapter, ...] = ()
    replicas: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])


class RestartPlan(msgspec.Struct, frozen=True):
    """The next step of a restart: its status, None without one, and the ids in the pods, by service."""

    status: RestartStatus | None = None
    ids: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class Suspension(msgspec.Struct, frozen=True):
    """`zero` are the services to scale to zero now; `condition` is None if the graph was never suspended."""

    zero: frozenset[str] = frozenset()
    condition: Condition | None = None


class Decision(msgspec.Struct, frozen=True):
    """What to write for a graph now.

    `graph` is the user's graph with the annotations of `record`, which are written first; with a `stop`
    nothing else is. `effective` is the graph to render, with the replicas of its adapters and of a suspension
    and the ids of restarts; `sized` has replicas in every service, to compare with the workloads. `rendered`
    are the objects to control, those `around` the workloads first, and `objects` the same as applied: running
    pods keep equivalent templates, and what the administrator does not allow is `blocked`, its keys `spared`.
    `claims` are the PVCs to create; `accounts` and `models` are shared with other graphs. `before` and
    `after` are the writes around the objects, and `closing` annotations of the graph that are written last,
    None to remove one.
    """

    graph: DynamoGraphDeployment
    inputs: GraphInputs
    settings: RenderSettings
    now: datetime
    provider: "Provider | None" = None
    features: "tuple[Feature, ...]" = ()
    record: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    stop: Stop | None = None
    effective: DynamoGraphDeployment = msgspec.field(default_factory=DynamoGraphDeployment)
    sized: DynamoGraphDeployment = msgspec.field(default_factory=DynamoGraphDeployment)
    history: History = msgspec.field(default_factory=History)
    adapters: AdapterPlan = msgspec.field(default_factory=AdapterPlan)
    restart: RestartPlan = msgspec.field(default_factory=RestartPlan)
    suspension: Suspension = msgspec.field(default_factory=Suspension)
    revisions: Revisions = msgspec.field(default_factory=Revisions)
    rollout: Rollout | None = None
    around: tuple[Object, ...] = ()
    rendered: tuple[Object, ...] = ()
    objects: tuple[Object, ...] = ()
    spared: frozenset[tuple[str, Key]] = frozenset()
    blocked: tuple[Blocked, ...] = ()
    claims: tuple[Object, ...] = ()
    accounts: tuple[Object, ...] = ()
    models: tuple[Object, ...] = ()
    before: tuple[Write, ...] = ()
    after: tuple[Write, ...] = ()
    closing: Mapping[str, str | None] = msgspec.field(default_factory=dict[str, str | None])

    def as_written(self, metadata: Metadata) -> "Decision":
        """The decision with the metadata that the API server returned after the record was written."""

        graphs = (self.graph, self.effective, self.sized)
        graph, effective, sized = (replace(written, metadata=metadata) for written in graphs)
        return replace(self, graph=graph, effective=effective, sized=sized)


class Feature(msgspec.Struct, frozen=True):
    """What one part of a graph adds to the decision; most graphs use few of them.

    `applies` sees the user's graph with its record, and what was read. `plan` comes before the replicas of
    the services are known, `plan_sized` after that. `render` adds to the objects `around` the workloads,
    `adjust` comes after the provider has rendered these, and `status` after all is applied.
    """

    applies: Callable[[Decision], bool]
    plan: Callable[[Decision], Decision] | None = None
    plan_sized: Callable[[Decision], Decision] | None = None
    render: Callable[[Decision], Iterable[Object]] | None = None
    adjust: Callable[[Decision], Decision] | None = None
    status: Callable[[Decision, DynamoGraphDeploymentStatus], DynamoGraphDeploymentStatus] | None = None


class Provider(msgspec.Struct, frozen=True):
    """What runs the services of a graph: components of this operator, or Grove.

    `render` adds the workloads to the objects `around` them. `views` are the services as they are after it
    was applied. `replaces` are the workloads of the other provider.
    """

    render: Callable[[Decision], Decision]
    views: Callable[[Decision, Applied, datetime], Mapping[str, ServiceView]]
    replaces: type[Resource]
