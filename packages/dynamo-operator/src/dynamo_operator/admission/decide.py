"""Decide on an object: the rules of each kind, and what an update inherits from the state before it."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final, Generic, TypeAlias, cast

import msgspec
from msgspec import Raw

from dynamo_operator import older_generation
from dynamo_operator.component import validate as components
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.exposure import exposure_problems, graph_exposure_problems
from dynamo_operator.component.validate_pod import image_problems
from dynamo_operator.graph import validate as graphs
from dynamo_operator.graph import warnings
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import with_provider
from dynamo_operator.graph.validate_grove import (
    grove_only_problems,
    least_problems,
    min_available_problem,
    provider_problems,
)
from dynamo_operator.models import validate as models
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.names import is_on_grove
from dynamo_operator.requests import validate as requests
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import MOST_PROBLEMS, Problem, service_path
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import R, Resource, decoder_of
from kube_runtime.wire import bytes_over, decode, identity

Container: TypeAlias = dict[str, object] | list[object]
_SCALARS: Final = (str, int, float, bool)


# Keys may contain dots, and paths have no quotes: `metadata.annotations.nvidia.com/x` has three
# steps, not four. So at each step the longest matching key wins: it is visited last.
#
# A document may have as many problems as fields, so one walk over it looks for all paths, and only where one
# of them leads: the status may have megabytes. Paths over `_LONGEST_PATH` are not followed, which bounds the
# text that is built for each value.
_LONGEST_PATH: Final = 1000


def scalars_at(document: Container, paths: Collection[str]) -> dict[str, object]:
    """The string, number or boolean at each path; other and very long paths are left out."""
    wanted = frozenset(path for path in paths if len(path) <= _LONGEST_PATH)
    ordered = sorted(wanted)

    def leads(step: tuple[str, object]) -> bool:
        index = bisect_left(ordered, step[0])
        return index < len(ordered) and ordered[index].startswith(step[0])

    scalars: dict[str, object] = {}
    visits = [*filter(leads, _steps("", document))]
    while visits:
        path, value = visits.pop()
        if isinstance(value, dict | list):
            visits += filter(leads, _steps(f"{path}." if isinstance(value, dict) else path, value))
        elif path in wanted and isinstance(value, _SCALARS):
            scalars[path] = value
    return scalars


def _steps(prefix: str, value: Container) -> Iterator[tuple[str, object]]:
    """The children of a value with their paths, the one with the longest key first."""
    if isinstance(value, list):
        return ((f"{prefix}[{index}]", part) for index, part in enumerate(value))
    longest_first = sorted(value.items(), key=lambda step: len(step[0]), reverse=True)
    return ((prefix + key, part) for key, part in longest_first)


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Inputs of a validation beside the object.

    `user` is the author of the request, `operator` our own user name; "" if unknown. Validation ends after
    `most` problems.
    """

    settings: RenderSettings
    user: str = ""
    operator: str = ""
    cluster: warnings.ClusterContext = warnings.UNKNOWN
    most: int = MOST_PROBLEMS


def _none(*_: object) -> Iterable[Problem]:
    return ()


@dataclass(frozen=True, slots=True)
class Rules(Generic[R]):
    """The rules of one kind: problems and warnings of objects and of changes.

    `problems` and `warnings` check an object, `changes` and `change_warnings` the old and the new one.
    `warnings` is for objects without problems, and `new_warnings` for those of them that are created.
    """

    type_: type[R]
    problems: Callable[[R, ReviewContext], Iterable[Problem]]
    changes: Callable[[R, R, ReviewContext], Iterable[Problem]] = _none
    warnings: Callable[[R, ReviewContext], Iterable[Problem]] = _none
    change_warnings: Callable[[R, R], Iterable[Problem]] = _none
    new_warnings: Callable[[R], Iterable[Problem]] = _none


AnyRules: TypeAlias = Rules[Any]
"""The rules of whatever kind."""


def _placed(graph: DynamoGraphDeployment, context: ReviewContext) -> DynamoGraphDeployment:
    """The graph on the provider that its controller will choose."""
    return with_provider(graph, Facts(grove_served=context.cluster.grove_served))


def _graph_problems(graph: DynamoGraphDeployment, context: ReviewContext) -> Iterator[Problem]:
    written, graph = graph, _placed(graph, context)  # as its controller validates it
    yield from provider_problems(graph)
    yield from graphs.graph_problems(graph, context.settings, context.most)
    if any(graphs.graph_size_problems(graph)):
        return  # the other rules are skipped then
    yield from graph_exposure_problems(graph, context.settings)
    if context.cluster is not warnings.UNKNOWN and not is_on_grove(graph):
        yield from grove_only_problems(written)
    for key, service in sorted(graph.spec.services.items()):
        yield from image_problems(service, service_path(key))
    yield from warnings.context_problems(graph, context.cluster)


def _component_problems(component: DynamoComponentDeployment, context: ReviewContext) -> Iterator[Problem]:
    yield from components.component_problems(component, context.settings, context.most)
    yield from exposure_problems(component.spec, "spec", context.settings)
    if not component.metadata.controller:  # of a graph, whose author has seen the problem there
        yield from image_problems(component.spec, "spec")
        if component.spec.min_available is not None:
            yield min_available_problem("spec")


def _graph_changes(
    old: DynamoGraphDeployment, new: DynamoGraphDeployment, context: ReviewContext
) -> Iterator[Problem]:
    yield from graphs.graph_update_problems(old, new)
    if not graphs.may_scale(context.user, new.metadata.namespace, context.operator):
        yield from graphs.adapter_problems(old, new)
    if is_on_grove(_placed(old, context)):
        yield from least_problems(old, new)


# The rules themselves are in the `validate` modules, which the controllers use too.
RULES: tuple[AnyRules, ...] = (
    Rules(
        DynamoGraphDeployment,
        problems=_graph_problems,
        changes=_graph_changes,
        warnings=lambda graph, context: warnings.graph_warnings(_placed(graph, context), context.cluster),
        change_warnings=warnings.graph_change_warnings,
        new_warnings=warnings.new_graph_warnings,
    ),
    Rules(
        DynamoComponentDeployment,
        problems=_component_problems,
        changes=lambda old, new, _: components.component_update_problems(old, new),
        warnings=lambda component, context: warnings.component_warnings(component, context.cluster),
        change_warnings=components.framework_warnings,
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
        problems=lambda request, context: chain(
            requests.request_problems(request, context.settings, context.most),
            requests.request_image_problems(request),
        ),
        changes=lambda old, new, _: requests.request_update_problems(old, new),
        warnings=lambda request, _: requests.request_warnings(request),
    ),
)
"""The rules of today's kinds that have a webhook."""


def rules_of(*, legacy_kinds: bool) -> tuple[AnyRules, ...]:
    """The rules of all reviewed kinds. Those of the older generation are imported on demand."""
    if not legacy_kinds:
        return RULES
    return (*RULES, *cast("tuple[AnyRules, ...]", older_generation("rules")))


_TOO_DEEP = Problem("document", "is nested too deeply")
_OBJECTS = decoder_of(dict[str, object])
_AT = " - at `"
_MOST_COMPARED = 10_000
"""Most problems of an update, more than of a create: an earlier problem must be found to become a warning."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a review: refused if there are problems. `warning_problems` are the warnings.

    `reason` is the label value of the refusal in metrics.
    """

    problems: tuple[Problem, ...] = ()
    warning_problems: tuple[Problem, ...] = ()
    reason: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, a line for each."""
        return tuple(str(problem) for problem in self.warning_problems)

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.problems


ALLOWED = Decision()


def decide(rules: Rules[R], new: Raw, old: Raw | None, context: ReviewContext) -> Decision:
    """Validate an object, as JSON text; `old` is None when it is created."""
    try:
        return _decided(rules, new, old, context)
    except RecursionError:
        return Decision((_TOO_DEEP,), reason="decode_failed")


# A stored object may be invalid, because a rule is newer or the webhooks were off. Users must be
# able to label, scale and repair it step by step. So an update is refused for problems that it
# adds; earlier problems become warnings. What was too large was not validated, so it had no others.
def _decided(rules: Rules[R], new_text: Raw, old_text: Raw | None, context: ReviewContext) -> Decision:
    try:
        if problem := size_problem(rules.type_, new_text, context.settings):
            return too_large(problem, new_text, old_text or Raw(b"{}"))
        new = decode(rules.type_, new_text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Decision((Problem("document", str(error)),), reason="decode_failed")
    except DecodeError as error:  # the object passes its schema and does not fit its type
        message, _, place = error.message.partition(_AT)
        path = place.rstrip("`").removeprefix("$").removeprefix(".") or "document"
        return Decision((Problem(path, message),), reason="decode_failed")
    if new.metadata.deletion_timestamp:
        return ALLOWED  # finalizers must be removable from invalid objects too
    old = None
    if old_text is not None:
        with suppress(DecodeError):
            old = decode(rules.type_, old_text)
            context = replace(context, most=_MOST_COMPARED)
    problems = tuple(islice(rules.problems(new, context), context.most))
    inherited: tuple[Problem, ...] = ()
    if problems and old and old_text and not size_problem(rules.type_, old_text, context.settings):
        recurring = frozenset(islice(rules.problems(old, context), context.most)).intersection(problems)
        inherited = _unchanged(recurring, new_text, old_text) if recurring else ()
        recurring = recurring.intersection(inherited)
        problems = tuple(problem for problem in problems if problem not in recurring)
    changes = () if old is None else tuple(rules.changes(old, new, context))
    warning_problems = [_as_before(problem) for problem in inherited]
    if old is not None:
        warning_problems += rules.change_warnings(old, new)
    if not problems and not inherited:
        warning_problems += rules.warnings(new, context)
        warning_problems += rules.new_warnings(new) if old_text is None else ()
    return Decision(
        tuple(dict.fromkeys((*problems, *changes))),
        tuple(dict.fromkeys(warning_problems)),
        _reason(problems, changes),
    )


def size_problem(type_: type[Resource], text: bytes | Raw, settings: RenderSettings) -> Problem | None:
    """The problem of an object, as JSON, that has more bytes than its kind may have."""
    most = components.most_bytes(type_, settings)
    size = bytes_over(text, most)
    counted = f"the object has {size} bytes without its status and annotations"
    return Problem("document", f"{counted} (limit {most}, --largest-object-bytes)") if size else None


def too_large(problem: Problem, new: Raw, old: Raw) -> Decision:
    """The decision on an object of that size, which is not decoded; `old` is `{}` at its creation."""
    if identity(new).deletion_timestamp:
        return ALLOWED  # finalizers must be removable from invalid objects too
    if bytes_over(new, 1) <= bytes_over(old, 1):  # it may be labelled, and made smaller step by step
        return Decision(warning_problems=(_as_before(problem),))
    return Decision((problem,), reason="too_large")


def _as_before(problem: Problem) -> Problem:
    return Problem(problem.path, f"{problem.message} (as before)", problem.kind)


def _unchanged(recurring: frozenset[Problem], new: Raw, old: Raw) -> tuple[Problem, ...]:
    """The problems that the update does not change: the same message about the same value.

    The same message is not enough: many fit every invalid value.
    """
    paths = {problem.path for problem in recurring}
    before, after = (scalars_at(_OBJECTS.decode(text), paths) for text in (old, new))
    return tuple(
        problem
        for problem in sorted(recurring)
        if len(problem.path) <= _LONGEST_PATH and before.get(problem.path) == after.get(problem.path)
    )


def _reason(problems: tuple[Problem, ...], changes: tuple[Problem, ...]) -> str:
    if problems:
        return problems[0].kind.value
    if not changes:
        return ""
    path = changes[0].path
    if path.endswith(".replicas"):
        return "replicas_managed_by_adapter"
    return "rollout_in_progress" if path == "spec.restart.id" else "immutable_field_changed"
