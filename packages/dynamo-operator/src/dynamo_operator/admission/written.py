"""Decide on an object in v1beta1: by the rules of v1alpha1, in the words in which it was written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Raw

from dynamo_operator.admission.decide import (
    ALLOWED,
    Decision,
    ReviewContext,
    Rules,
    decide,
    size_problem,
    too_large,
)
from dynamo_operator.component.api import GROUP, LATER
from dynamo_operator.graph import validate_v1beta1 as graphs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import with_provider
from dynamo_operator.graph.warnings import UNKNOWN
from dynamo_operator.names import is_on_grove
from dynamo_operator.requests import validate_v1beta1 as requests
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import SERVED, Problem, is_later_version
from dynamo_operator.shared.seen import seen
from dynamo_operator.shared.written import Written
from dynamo_operator.versions.conversion import left_out
from dynamo_operator.versions.room import MOST_BYTES
from dynamo_operator.versions.shapes import ConversionError
from kube_runtime.types.meta import Object, R, from_json, from_plain


def _none(*_: object) -> Iterable[Problem]:
    return ()


@dataclass(frozen=True, slots=True)
class WrittenRules:
    """The rules of fields that only v1beta1 has, with its paths.

    The argument of `problems` beside the object is whether a graph may be on Grove.
    """

    problems: Callable[[Object, bool], Iterable[Problem]]
    warnings: Callable[[Object], Iterable[Problem]]
    changes: Callable[[Object, Object], Iterable[Problem]] = _none


_COMPONENTS: Final = WrittenRules(
    problems=lambda document, grove: graphs.written_problems(document, may_be_on_grove=grove),
    warnings=graphs.written_warnings,
    changes=graphs.written_update_problems,
)
_OWN: Final = {
    "DynamoGraphDeployment": _COMPONENTS,
    "DynamoComponentDeployment": _COMPONENTS,
    "DynamoGraphDeploymentRequest": WrittenRules(
        problems=lambda document, _: requests.written_request_problems(document),
        warnings=requests.written_request_warnings,
    ),
}


_NO_RULES: Final = WrittenRules(_none, _none)


def rules_of_written(kind: str) -> WrittenRules:
    """The rules of a kind beside those of v1alpha1."""
    return _OWN.get(kind, _NO_RULES)


def decide_written(rules: Rules[R], new: Raw, old: Raw | None, context: ReviewContext) -> Decision:
    """Validate an object of v1beta1, as JSON text; `old` is None when it is created."""
    try:
        if problem := size_problem(rules.type_, new, context.settings):  # before it is converted
            return too_large(problem, new, old or Raw(b"{}"))
        written = _read(new)
    except ConversionError as error:
        return Decision((Problem(error.path or "document", error.problem),), reason="decode_failed")
    except (msgspec.DecodeError, RecursionError) as error:
        return Decision((Problem("document", str(error)),), reason="decode_failed")
    if (written.seen.get("metadata") or {}).get("deletionTimestamp"):
        return ALLOWED
    before = None if old is None else _former(rules, old, context)
    former = None if old is None else _UNREADABLE if before is None else _text(before)
    decision = decide(rules, _text(written), former, context)
    own = rules_of_written(rules.type_.KIND.name)
    grove = may_be_on_grove(written.seen, context)
    inherited = set(own.problems(before.written, grove)) if before else set()
    problems = [problem for problem in own.problems(written.written, grove) if problem not in inherited]
    problems += own.changes(before.written, written.written) if before else ()
    warnings = own.warnings(written.written) if decision.allowed and not problems else ()
    return Decision(
        _once([*map(written.problem, decision.problems), *problems]),
        _once([*map(written.problem, decision.warning_problems), *warnings]),
        decision.reason or (problems[0].kind.value if problems else ""),
    )


_UNREADABLE: Final = Raw(b"null")


# It may have been stored before there was a limit, or a rule. An update that repairs it is judged on its own,
# as in v1alpha1.
def _former(rules: Rules[R], old: Raw, context: ReviewContext) -> Written | None:
    """The object before an update; None if it is too large to be converted, or cannot be."""
    if size_problem(rules.type_, old, context.settings):
        return None
    try:
        return _read(old)
    except (ConversionError, msgspec.DecodeError, RecursionError):
        return None


def _read(text: Raw) -> Written:
    document: Any = from_json(text, dict[str, Any])
    return Written(document, seen(document))


def decide_room(new: Raw, old: Raw | None) -> Decision:
    """Refuse an object, as JSON text, whose annotations leave no room for those of its conversion.

    An object that had as little before an update may be updated.
    """
    lacking = _left_out(new)
    if not lacking or (old is not None and {*lacking} <= {*_left_out(old)}):
        return ALLOWED
    message = (
        f"no room for {' and '.join(lacking)}, in which the other version of the object keeps what it has no "
        f"field for (expected at most {MOST_BYTES} bytes with it)"
    )
    return Decision((Problem("metadata.annotations", message),), reason="too_large")


def _left_out(text: Raw) -> tuple[str, ...]:
    try:
        document: Any = from_json(text, dict[str, Any])
        document.pop("status", None)  # what is kept of it, the operator writes again
        return left_out(document, SERVED if is_later_version(document) else f"{GROUP}/{LATER}")
    except (ConversionError, msgspec.DecodeError, RecursionError):
        return ()


def in_v1alpha1(text: Raw) -> Raw:
    """An object of v1beta1, as JSON text, as rules see it. Raises ConversionError, msgspec.DecodeError."""
    return _text(_read(text))


def _text(written: Written) -> Raw:
    return Raw(msgspec.json.encode(written.seen))


def may_be_on_grove(seen: Object, context: ReviewContext) -> bool:
    """Whether an object, as rules see it, is a graph that may run on Grove."""
    if seen["kind"] != DynamoGraphDeployment.KIND.name:
        return False
    if context.cluster is UNKNOWN:
        return True
    metadata = {"metadata": seen.get("metadata", {})}
    graph = from_plain(metadata, DynamoGraphDeployment)
    return is_on_grove(with_provider(graph, Facts(grove_served=context.cluster.grove_served)))


def _once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems)))
