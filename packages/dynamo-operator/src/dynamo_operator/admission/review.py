"""The API server's AdmissionReview: the request in a body, the decision on it, and the response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import structlog
from msgspec import Raw

from dynamo_operator.admission.decide import (
    ALLOWED,
    RULES,
    AnyRules,
    Decision,
    ReviewContext,
    decide,
    size_problem,
)
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.component.api import LATER
from kube_runtime.types.kinds import UserInfo
from kube_runtime.types.meta import Object, Struct, decoder_of
from kube_runtime.wire import UNREADABLE

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_NULL = b"null"
_FORBIDDEN = 403
_MOST = 100
_LONGEST = 1000
"""Most lines, and characters of one: a response must not repeat megabytes of an outsider's text."""
_ROOMY = 64 * 1024
"""Bytes of an object, as JSON, that has room for the annotations of its conversion.

They had at most 2.4 times the bytes of the spec, measured with the shortest names, of 256 KiB.
"""


class RequestKind(Struct):
    """The version of the object, as the API server sends it."""

    version: str = ""


class Request(Struct):
    """One request. `object` and `old_object` are JSON text, `null` if there is none."""

    uid: str
    kind: RequestKind = RequestKind()
    operation: str = ""
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    object: Raw = Raw(_NULL)
    old_object: Raw = Raw(_NULL)
    dry_run: bool = False

    @property
    def is_later(self) -> bool:
        """Whether the object is in v1beta1."""
        return self.kind.version == LATER

    @property
    def new(self) -> Raw | None:
        """The new object; None for a deletion."""
        return None if memoryview(self.object) == _NULL else self.object

    @property
    def old(self) -> Raw | None:
        """The previous object; None for a creation."""
        return None if memoryview(self.old_object) == _NULL else self.old_object


class Review(Struct):
    """The AdmissionReview around a request."""

    api_version: str
    kind: str
    request: Request


class NotAReview(Exception):
    """The body is not a supported AdmissionReview; the message says why."""


_REVIEWS = decoder_of(Review)


def request_in(body: bytes) -> Request:
    """Decode the request in a body.

    Raises:
        NotAReview: the body has none.
    """
    try:
        review = _REVIEWS.decode(body)
    except UNREADABLE as error:
        raise NotAReview(f"invalid AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise NotAReview(f"expected {KIND} of {API_VERSION}, got {review.kind} of {review.api_version}")
    if not review.request.uid:
        raise NotAReview("missing uid of the request")
    return review.request


def answer(uid: str, decision: Decision) -> bytes:
    """Encode the response body."""
    response: Object = {"uid": uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = {
            "code": _FORBIDDEN,
            "message": "\n".join(_short([str(problem) for problem in decision.problems])),
            "reason": "Forbidden",
        }
    if decision.warnings:
        response["warnings"] = _short(decision.warnings)
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _short(texts: Sequence[str]) -> list[str]:
    lines = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts[:_MOST]]
    return [*lines, f"and {len(texts) - _MOST} more"] if len(texts) > _MOST else lines


_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Decisions:
    """Validates requests by `rules`. `is_excluded` returns whether another operator manages a namespace."""

    context_of: Callable[[Request], ReviewContext]
    is_excluded: Callable[[str], bool]
    rules: Sequence[AnyRules] = RULES

    def decide(self, rules: AnyRules, request: Request) -> Decision:
        """Validate a request by the rules of its kind."""
        if request.new is None or request.operation == "DELETE" or request.sub_resource:
            return ALLOWED  # no spec is stored
        log = _log.bind(kind=rules.type_.KIND.name, namespace=request.namespace, name=request.name)
        if self.is_excluded(request.namespace):
            log.debug("skipping validation - namespace has namespace-restricted operator")
            return ALLOWED
        text = f"validate {request.operation.lower()}"
        log.debug(text)
        context = self.context_of(request)
        has_room = rules.type_ not in CONVERTED or memoryview(request.new).nbytes <= _ROOMY
        if has_room and not request.is_later:
            return decide(rules, request.new, request.old, context)
        # Not imported where one version is served, as the conversion.
        from dynamo_operator.admission.written import decide_room, decide_written

        by_version = decide_written if request.is_later else decide
        decision = by_version(rules, request.new, request.old, context)
        if has_room or not decision.allowed or size_problem(rules.type_, request.new, context.settings):
            return decision
        refusal = decide_room(request.new, request.old)
        return decision if refusal.allowed else refusal
