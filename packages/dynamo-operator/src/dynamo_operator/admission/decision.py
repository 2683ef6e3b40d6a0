"""Decide whether an object may be stored, with its problems and warnings.

A stored object may be invalid, because a rule is newer or the webhooks were off. Users must be able to
label, scale and repair it step by step. So an update is refused for problems that it adds; earlier problems
become warnings.
"""

from dataclasses import dataclass, replace
from itertools import islice

import msgspec
from msgspec import Raw

from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.bounds import most_bytes
from dynamo_operator.admission.json_path import scalars_at
from dynamo_operator.admission.rules import ReviewContext, Rules
from kube_runtime.decode import bytes_over, decode, too_large
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import R, Struct

_TOO_DEEP = Problem("document", "is nested too deeply")
_OBJECTS = msgspec.json.Decoder(dict[str, object])
_AT = " - at `"
_MOST_COMPARED = 10_000
"""Most problems of an update, more than of a create: an earlier problem must be found to become a warning."""


class _Metadata(Struct, frozen=True):
    deletion_timestamp: str | None = None


class _Frame(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_FRAME = msgspec.json.Decoder(_Frame)


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


def _decided(
    rules: Rules[R], new_text: Raw, old_text: Raw | None, context: ReviewContext
) -> Decision:
    most = most_bytes(rules.type_, context.settings)
    try:
        if size := bytes_over(new_text, most):
            return _too_large(new_text, size, bytes_over(old_text or Raw(b"{}"), most), most)
        new = decode(rules.type_, new_text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Decision((Problem("document", str(error)),), reason="decode_failed")
    except DecodeError as error:
        return Decision((_misfit(error),), reason="decode_failed")
    if new.metadata.deletion_timestamp:
        return ALLOWED  # finalizers must be removable from invalid objects too
    old = _readable(rules, old_text)
    if old is not None:
        context = replace(context, most=_MOST_COMPARED)
    problems = tuple(islice(rules.problems(new, context), context.most))
    inherited: tuple[Problem, ...] = ()
    if problems and old is not None and old_text is not None:
        recurring = frozenset(islice(rules.problems(old, context), context.most)).intersection(
            problems
        )
        inherited = _unchanged(recurring, new_text, old_text)
        forgiven = frozenset(inherited)
        problems = tuple(problem for problem in problems if problem not in forgiven)
    changes = () if old is None else tuple(rules.changes(old, new, context))
    warning_problems = [
        Problem(problem.path, f"{problem.message} (as before)", problem.kind)
        for problem in inherited
    ]
    if old is not None:
        warning_problems += rules.change_warnings(old, new)
    if not problems and not inherited:
        warning_problems += rules.warnings(new, context)
    return Decision(
        tuple(dict.fromkeys((*problems, *changes))),
        tuple(dict.fromkeys(warning_problems)),
        _reason(problems, changes),
    )


def _too_large(text: Raw, size: int, before: int, most: int) -> Decision:
    """Decide on an object that is too large to be decoded as a whole.

    An object that was too large before may be labelled, and made smaller step by step.
    """
    if _FRAME.decode(text).metadata.deletion_timestamp:
        return ALLOWED  # finalizers must be removable from invalid objects too
    problem = Problem("document", too_large(size, most))
    if size <= before:
        return Decision(warning_problems=(Problem(problem.path, f"{problem.message} (as before)"),))
    return Decision((problem,), reason="too_large")


def _unchanged(recurring: frozenset[Problem], new: Raw, old: Raw) -> tuple[Problem, ...]:
    """The problems that the update does not change: the same message about the same value.

    The same message is not enough: many fit every invalid value, and one invalid value must not replace
    another.
    """
    if not recurring:
        return ()
    paths = {problem.path for problem in recurring}
    before, after = (scalars_at(_OBJECTS.decode(text), paths) for text in (old, new))
    return tuple(
        problem
        for problem in sorted(recurring)
        if before.get(problem.path) == after.get(problem.path)
    )


def _readable(rules: Rules[R], text: Raw | None) -> R | None:
    """Decode the previous state; None if that fails."""
    if text is None:
        return None
    try:
        return decode(rules.type_, text)
    except DecodeError:
        return None


def _misfit(error: DecodeError) -> Problem:
    """The problem of an object that passes its schema and does not fit its type (decision 41)."""
    message, _, place = error.message.partition(_AT)
    return Problem(place.rstrip("`").removeprefix("$").removeprefix(".") or "document", message)


def _reason(problems: tuple[Problem, ...], changes: tuple[Problem, ...]) -> str:
    """The reason of a refusal, from a closed list."""
    if problems:
        return problems[0].kind.value
    if not changes:
        return ""
    path = changes[0].path
    if path.endswith(".replicas"):
        return "replicas_managed_by_adapter"
    return "rollout_in_progress" if path == "spec.restart.id" else "immutable_field_changed"
