"""Whether who asks for a graph in another namespace may create one there himself.

A DynamoGraphDeploymentRequest may name the namespace of the graph that it leads to, and the operator, which
may create graphs everywhere, makes it. Whoever may write requests somewhere could so use the quota and the
Secrets of every namespace. So the API server is asked whether he could do it with his own hands.

The hard part is that such a request is never quite settled: its spec may change until profiling begins, and
after each failure. Who changes it decides what runs over there, so he is asked about like its author.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from dynamo_operator.admission.review import Request
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.decode import UNREADABLE
from dynamo_operator.kube.errors import OperatorError
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.access import SubjectAccessReview, UserInfo, question, subject
from dynamo_operator.kube.types.meta import Struct
from dynamo_operator.validation import Problem, ProblemKind

PATH = "spec.deploymentOverrides.namespace"


class _Overrides(Struct):
    namespace: str | None = None


class _Spec(Struct):
    deployment_overrides: _Overrides | None = None


class _Asked(Struct):
    spec: _Spec | None = None


class _Whole(Struct):
    spec: Any = None


_DECODER = msgspec.json.Decoder(_Asked)
_WHOLE = msgspec.json.Decoder(_Whole)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Asks the API server about users."""

    client: Client

    async def problems(self, request: Request) -> tuple[Problem, ...]:
        """A problem if the request leads to a namespace where its author may not create graphs.

        Updates that leave the spec as it is are not asked about: others may label it.
        """
        wanted = _namespace(request.new)
        if not wanted or wanted == request.namespace or _spec(request.new) == _spec(request.old):
            return ()
        try:
            asked = _may_create(request.user_info, wanted)
            review = await self.client.create(SubjectAccessReview, asked)
        except OperatorError as error:
            message = (
                f"{PATH}: whether you may create graphs in {wanted} could not be asked: {error}"
            )
            return (Problem(PATH, message, ProblemKind.FORBIDDEN),)
        if review.status.allowed:
            return ()
        message = f"{PATH} is {wanted}, and you may not create DynamoGraphDeployments there"
        return (Problem(PATH, message, ProblemKind.FORBIDDEN),)


def _namespace(text: Raw | None) -> str:
    if text is None:
        return ""
    try:
        spec = _DECODER.decode(text).spec
    except UNREADABLE:
        return ""  # what does not fit its type is refused before
    overrides = spec.deployment_overrides if spec else None
    return (overrides.namespace if overrides else None) or ""


def _spec(text: Raw | None) -> Any:
    if text is None:
        return None
    try:
        return _WHOLE.decode(text).spec
    except UNREADABLE:
        return None


def _may_create(user: UserInfo, namespace: str) -> Object:
    """Asks whether a user may create graphs in a namespace."""
    graphs = DynamoGraphDeployment.KIND
    attributes = {
        "group": graphs.group,
        "resource": graphs.plural,
        "verb": "create",
        "namespace": namespace,
    }
    wanted = {**subject(user), "resourceAttributes": attributes}
    return question(SubjectAccessReview.KIND, wanted)
