"""Build the controllers, and add them to the manager."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dynamo_graphs.api import labels
from dynamo_graphs.plan.suspension import TYPE as SUSPENDED
from dynamo_graphs.settings import Settings
from dynamo_graphs.settings.process import usable
from dynamo_graphs.status.graph import GraphState
from dynamo_operator.component.controller import ComponentController
from dynamo_operator.graph.controller import GraphController
from dynamo_operator.lora.calls import ModelCalls
from dynamo_operator.lora.controller import STATUS_SECONDS, ModelController
from dynamo_operator.lora.lora_api import worker_api
from dynamo_operator.observability.metrics import CallMetrics, RolloutMetrics
from dynamo_operator.reconcile.offload import Offload, ValidationCache
from dynamo_operator.reconcile.pods import PodIndex
from dynamo_operator.reconcile.refusals import report_refusal
from dynamo_operator.reconcile.report import Reporter
from dynamo_operator.reconcile.ssh_key_controller import SshKeyController, creates_ssh_keys
from dynamo_operator.requests.actions import RequestActions
from dynamo_operator.requests.controller import RequestController
from dynamo_operator.requests.cross_namespace import Grants
from dynamo_operator.requests.gpu_discovery_rbac import GpuDiscoveryRbac
from dynamo_operator.requests.read import RequestReader
from dynamo_operator.scaling.controller import ScalingController
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.managed_fields import ManagedFieldsUpgrade
from kube_runtime.apply.status_patch import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.connect import is_own_cluster
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import ControllerOptions
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class Parts:
    """What controllers share. `holds_lease` returns whether this process may write in a namespace now."""

    manager: Manager
    client: Client
    cache: Cache
    writer: Writer
    events: EventWriter
    settings: Settings
    metrics: RuntimeMetrics
    holds_lease: Callable[[str], bool]
    offload: Offload

    @property
    def options(self) -> ControllerOptions:
        """The options of a controller that no other one feeds."""
        return ControllerOptions(resync_seconds=self.settings.resync_period_seconds)

    def options_reporting(self, type_: type[Resource], reporter: Reporter) -> ControllerOptions:
        """The same for a controller that reports on objects of its kind which of its writes fails."""
        report = partial(report_refusal, type_, self.cache, reporter)
        return replace(self.options, report=report)

    def applier(self) -> Applier:
        """A new applier for the objects of controllers."""
        take_over = ManagedFieldsUpgrade(self.writer, labels.LAST_APPLIED_GENERATION)
        return Applier(self.writer, labels.LAST_APPLIED_HASH, labels.OWNER_GENERATION, take_over)

    def reporter(self, component: str, limit: StatusRateLimit) -> Reporter:
        """A reporter for one kind, whose Events name `component` as their source."""
        return Reporter(self.writer, self.events.recorder(component), limit, self.client)


def control_all(parts: Parts, dial: Callable[[str], str] | None) -> None:
    """Reconcile all kinds; those of the older generation if they are enabled. `dial` is for models."""
    pods = control_graphs(parts)
    control_models(parts, dial)
    control_requests(parts)
    if parts.settings.legacy_kinds:
        from dynamo_operator.process.legacy import control

        control(parts, pods)


def control_graphs(parts: Parts) -> PodIndex:
    """Reconcile graphs, components, scaling adapters, and SSH keys of multinode components."""
    manager, settings = parts.manager, parts.settings.render
    applier, pods = parts.applier(), PodIndex(parts.cache)
    of_graphs = StatusRateLimit(
        goal="Ready",
        first_at_once=True,
        never_delayed=("restart", "rollingUpdate", SUSPENDED),
        transient_states=(GraphState.INITIALIZING, GraphState.PENDING),
        activity=parts.events.activity,
    )
    of_components = StatusRateLimit(goal="Available", activity=parts.events.activity)
    rollouts = RolloutMetrics(parts.metrics.registry)
    component_reporter = parts.reporter("dynamocomponentdeployment", of_components)
    graph_reporter = parts.reporter("dynamographdeployment", of_graphs)
    graph_reporter = replace(graph_reporter, written=rollouts.written)
    writer, cache, offload = parts.writer, parts.cache, parts.offload
    read = (pods, settings, ValidationCache(), offload)
    components = ComponentController(cache, applier, component_reporter, *read)
    graphs = GraphController(writer, cache, applier, graph_reporter, *read)
    # Graphs create components, so they wait while the component controller has a backlog.
    options = parts.options_reporting(components.reconciles, component_reporter)
    is_ahead = manager.control(components, options).has_backlog
    options = parts.options_reporting(graphs.reconciles, graph_reporter)
    wake = manager.control(graphs, replace(options, is_ahead=is_ahead)).wake
    memories = (applier.forget, parts.events.forget, graphs.validated.forget)
    for type_ in dict.fromkeys((*components.owns, *graphs.owns, graphs.reconciles)):
        cache.subscribe_deleted(type_, *memories)
    reporter = parts.reporter("dgdscalingadapter", StatusRateLimit())
    scaling = ScalingController(cache, reporter)
    manager.control(scaling, parts.options_reporting(scaling.reconciles, reporter))
    if creates_ssh_keys(settings):
        keys = SshKeyController(writer, cache, settings, applier.suppression, wake)
        manager.control(keys, parts.options)
    return pods


def control_models(parts: Parts, dial: Callable[[str], str] | None) -> None:
    """Reconcile models. `dial` maps the base URL of a worker to the one to connect to; None: the same."""
    model_settings = usable(parts.settings.models)
    calls = ModelCalls(
        partial(worker_api, model_settings, dial or str),
        silence=lora_disabled_reason(parts.settings, is_dialled=dial is not None),
        at_once=model_settings.calls_at_once,
        may_call=parts.holds_lease,
        observe=CallMetrics(parts.metrics.registry).called,
    )
    reporter = parts.reporter("dynamomodel", StatusRateLimit(STATUS_SECONDS))
    models = ModelController(parts.cache, reporter, calls)
    options = parts.options_reporting(models.reconciles, reporter)
    calls.wake = parts.manager.control(models, options).wake
    parts.manager.serve(calls)


def control_requests(parts: Parts) -> None:
    """Reconcile DynamoGraphDeploymentRequests."""
    settings = parts.settings.render
    accepts_all = parts.settings.webhooks.graphs_elsewhere
    grants = Grants(parts.client, accepts_all, bool(settings.restricted_namespace))
    reader = RequestReader(parts.client, parts.cache, settings, grants, parts.offload)
    role = settings.dgdr_profiling_nodes_cluster_role_name
    gpu_rbac = GpuDiscoveryRbac(parts.client, parts.writer, parts.cache, role)
    actions = RequestActions(parts.writer, reader, parts.applier(), settings, gpu_rbac)
    reporter = parts.reporter("dynamographdeploymentrequest", StatusRateLimit())
    requests = RequestController(parts.cache, actions, reporter)
    parts.manager.control(requests, parts.options_reporting(requests.reconciles, reporter))


def lora_disabled_reason(settings: Settings, *, is_dialled: bool) -> str:
    """Why the operator calls no workers; "" if it does."""
    if settings.models.calls == "never":
        return "LoRA calls are off (--model-calls=never)"
    if settings.models.calls == "always" or is_dialled:
        return ""
    if is_own_cluster(Path(settings.kubeconfig) if settings.kubeconfig else None):
        return ""
    return (
        "the operator runs outside the cluster and calls no workers, because pod addresses may "
        "belong to other machines there (--model-calls=always calls them)"
    )
