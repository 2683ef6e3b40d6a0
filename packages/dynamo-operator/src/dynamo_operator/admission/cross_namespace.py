"""Check whether the author of a request for a graph in another namespace may create one there.

A DynamoGraphDeploymentRequest may name the namespace of its graph, and the operator, which may create
graphs everywhere, creates it. Without this check a user who may write requests could use the quota and the
Secrets of every namespace. So the webhook asks the API server whether the author has the permission. That
refuses early, in the author's terminal. The controller relies on RBAC of the other namespace, since a
webhook is not always called (`requests/cross_namespace.py`).

An outsider may send a review with any user in it, and the answer reveals what that user may do. So a client
has few queries, only some run at a time, and answers are cached for a moment: outsiders can neither take
the capacity of reconciles nor read the permissions of a cluster in bulk.

The spec of a request may change until profiling begins, and after each failure. A user who changes it
decides what runs in the other namespace, so the check covers them as well as the author.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Raw

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_operator.admission.review import Request
from kube_runtime.apply.suppression import Recent
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.decode import UNREADABLE
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Kind, Object
from kube_runtime.rate_limits import TokenBucket
from kube_runtime.serving.clients import FairSemaphore
from kube_runtime.types.access import SubjectAccessReview, UserInfo, question, subject
from kube_runtime.types.core import ConfigMap
from kube_runtime.types.meta import Struct

AT_ONCE: Final = 4
BURST: Final = 20
REFILL_SECONDS: Final = 3.0
"""A client may send BURST queries, and one more each REFILL_SECONDS."""

KEPT_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 1024
"""Number of clients and of answers that are remembered."""

PATH = "spec.deploymentOverrides.namespace"


class _Overrides(Struct):
    namespace: str | None = None


class _Spec(Struct):
    deployment_overrides: _Overrides | None = None


class _Asked(Struct):
    spec: _Spec | None = None


class _Whole(Struct):
    spec: Any = None
    metadata: dict[str, Any] = {}


_DECODER = msgspec.json.Decoder(_Asked)
_WHOLE = msgspec.json.Decoder(_Whole)


class TooManyAccessReviews(OperatorError):
    """The client exceeded its rate; no query was sent."""


class AccessReviews:
    """Sends SubjectAccessReviews.

    `are_clients_known`: all reviews come from the API server, so clients need no rate limit.
    """

    def __init__(self, client: Client, *, are_clients_known: bool = False) -> None:
        self._client = client
        self._are_clients_known = are_clients_known
        self._turns = FairSemaphore(AT_ONCE)
        self._answers: Recent[tuple[bool, float]] = Recent(MOST_REMEMBERED)
        self._budgets: Recent[TokenBucket] = Recent(MOST_REMEMBERED)

    @property
    def remembered(self) -> tuple[int, int]:
        """Number of remembered answers and clients."""
        return len(self._answers), len(self._budgets)

    async def allowed(self, spec: Object, client: str) -> bool:
        """Whether the API server allows what the spec of a `SubjectAccessReview` describes.

        `client` is the source of the review.

        Raises:
            TooManyAccessReviews: the client exceeded its rate.
            OperatorError: no answer.
        """
        key = msgspec.json.encode(spec)
        cached = self._answers.get(key)
        if cached is not None and cached[1] > loop_time():
            return cached[0]
        if not self._are_clients_known:
            self._spend(client)
        async with self._turns.slot(client):
            body = question(SubjectAccessReview.KIND, spec)
            review = await self._client.create(SubjectAccessReview, body)
        self._answers.put(key, (review.status.allowed, loop_time() + KEPT_SECONDS))
        return review.status.allowed

    def _spend(self, client: str) -> None:
        budget = self._budgets.get(client) or TokenBucket(BURST, loop_time())
        self._budgets.put(client, budget)
        if not budget.take(BURST, REFILL_SECONDS, loop_time()):
            raise TooManyAccessReviews("too many questions about users from the same address")


@dataclass(frozen=True, slots=True)
class CrossNamespace:
    """Checks requests for graphs in other namespaces."""

    access_reviews: AccessReviews

    async def problems(self, request: Request, client: str = "") -> tuple[Problem, ...]:
        """A problem if the request leads to a namespace where its author may not create graphs.

        `client` is the source of the review. Updates that change neither the spec nor the operator's record
        of what it has done are not checked: other users may label the request.
        """
        namespace = _namespace(request.new)
        if namespace in {"", request.namespace} or _deciding(request.new) == _deciding(request.old):
            return ()
        for type_ in (DynamoGraphDeployment, ConfigMap):
            kind = type_.KIND
            try:
                spec = _may_create(request.user_info, kind, namespace)
                allowed = await self.access_reviews.allowed(spec, client)
            except OperatorError as error:
                text = f"could not check whether you may create {kind.name}s in {namespace}"
                message = f"{PATH}: {text}: {error}"
                return (Problem(PATH, message, ProblemKind.FORBIDDEN),)
            if not allowed:
                message = f"{PATH} is {namespace}, where you may not create {kind.name}s"
                return (Problem(PATH, message, ProblemKind.FORBIDDEN),)
        return ()


def _namespace(text: Raw | None) -> str:
    if text is None:
        return ""
    try:
        spec = _DECODER.decode(text).spec
    except UNREADABLE:
        return ""  # the validation refuses such an object before
    overrides = spec.deployment_overrides if spec else None
    return (overrides.namespace if overrides else None) or ""


def _deciding(text: Raw | None) -> object:
    """What decides which objects are created: the spec, and the record of what was done."""
    if text is None:
        return None
    try:
        whole = _WHOLE.decode(text)
    except UNREADABLE:
        return None
    annotations = whole.metadata.get("annotations") or {}
    return whole.spec, annotations.get(labels.REQUEST_RECORD)


def _may_create(user: UserInfo, kind: Kind, namespace: str) -> Object:
    """The access review: whether a user may create objects of that kind in a namespace."""
    attributes = {
        "group": kind.group,
        "resource": kind.plural,
        "verb": "create",
        "namespace": namespace,
    }
    return {**subject(user), "resourceAttributes": attributes}
