"""The validation rules of each kind, for the webhook and for `dynamoctl lint`.

The rules themselves are in `dynamo_graphs.validation`, which the controllers use too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.provider import with_provider
from dynamo_graphs.render.profiling_config import profiler_config_bytes
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, service_path, update
from dynamo_graphs.validation import model as models
from dynamo_graphs.validation import request as requests
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, graph_size_problems
from dynamo_graphs.validation.cluster_context import UNKNOWN, ClusterContext, context_problems
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.exposure import exposure_problems, graph_exposure_problems
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.images import image_problems
from dynamo_graphs.validation.warnings import component_warnings, graph_warnings
from kube_runtime.types.meta import R


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Inputs of a validation beside the object.

    `user` is the author of the request, `operator` our own user name; "" if unknown. Validation ends after
    `most` problems.
    """

    settings: RenderSettings
    user: str = ""
    operator: str = ""
    cluster: ClusterContext = UNKNOWN
    most: int = MOST_PROBLEMS


def _none(*_: object) -> Iterable[Problem]:
    return ()


@dataclass(frozen=True, slots=True)
class Rules(Generic[R]):
    """The rules of one kind: problems and warnings of objects and of changes.

    `problems` and `warnings` check an object, `changes` and `change_warnings` the old and the new one.
    `warnings` is for objects without problems.
    """

    type_: type[R]
    problems: Callable[[R, ReviewContext], Iterable[Problem]]
    changes: Callable[[R, R, ReviewContext], Iterable[Problem]] = _none
    warnings: Callable[[R, ReviewContext], Iterable[Problem]] = _none
    change_warnings: Callable[[R, R], Iterable[Problem]] = _none


def _graph_problems(graph: DynamoGraphDeployment, context: ReviewContext) -> Iterator[Problem]:
    facts = Facts(grove_served=context.cluster.grove_served)
    graph = with_provider(graph, facts)  # as its controller validates it
    yield from graph_problems(graph, context.settings, context.most)
    if any(graph_size_problems(graph)):
        return  # the other rules are skipped then
    yield from graph_exposure_problems(graph, context.settings)
    for key, service in sorted(graph.spec.services.items()):
        yield from image_problems(service, service_path(key))
    yield from context_problems(graph, context.cluster)


def _component_problems(
    component: DynamoComponentDeployment, context: ReviewContext
) -> Iterator[Problem]:
    yield from component_problems(component, context.settings, context.most)
    yield from exposure_problems(component.spec, "spec", context.settings)
    if not component.metadata.controller:  # of a graph, whose author has seen the problem there
        yield from image_problems(component.spec, "spec")


def _graph_changes(
    old: DynamoGraphDeployment, new: DynamoGraphDeployment, context: ReviewContext
) -> Iterator[Problem]:
    yield from update.graph_update_problems(old, new)
    if not update.may_scale(context.user, new.metadata.namespace, context.operator):
        yield from update.adapter_problems(old, new)


def _request_problems(
    request: DynamoGraphDeploymentRequest, context: ReviewContext
) -> Iterator[Problem]:
    spec = request.spec
    size = profiler_config_bytes(spec, request.metadata.namespace) if spec is not None else 0
    yield from requests.request_problems(request, context.settings, size, context.most)
    yield from requests.request_image_problems(request)


RULES: tuple[Rules[Any], ...] = (
    Rules(
        DynamoGraphDeployment,
        problems=_graph_problems,
        changes=_graph_changes,
        warnings=lambda graph, context: graph_warnings(graph, context.cluster),
        change_warnings=update.framework_warnings,
    ),
    Rules(
        DynamoComponentDeployment,
        problems=_component_problems,
        changes=lambda old, new, _: update.framework_problems(old, new),
        warnings=lambda component, context: component_warnings(component, context.cluster),
        change_warnings=update.framework_warnings,
    ),
    Rules(
        DynamoModel,
        problems=lambda model, _: models.model_problems(model),
        changes=lambda old, new, _: models.model_update_problems(old, new),
        warnings=lambda model, _: models.model_warnings(model),
        change_warnings=models.model_update_warnings,
    ),
    Rules(
        DynamoGraphDeploymentRequest,
        problems=_request_problems,
        changes=lambda old, new, _: requests.request_update_problems(old, new),
        warnings=lambda request, _: requests.request_warnings(request),
    ),
)
"""The rules of today's kinds."""


def rules_of(*, legacy_kinds: bool) -> tuple[Rules[Any], ...]:
    """The rules of all reviewed kinds. Those of the older generation are imported on demand."""
    if not legacy_kinds:
        return RULES
    from dynamo_operator.admission.legacy import LEGACY_RULES

    return (*RULES, *LEGACY_RULES)
