"""Reviews as the API server sends them."""

import base64
import json
from typing import Any

import msgspec

from dynamo_operator.admission.decide import Decision, ReviewContext, Rules, decide
from dynamo_operator.admission.decide import rules_of as served
from dynamo_operator.admission.review import API_VERSION, KIND
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object

OPERATOR = "system:serviceaccount:dyn:dynamo-platform-dynamo-operator-controller-manager"
SETTINGS = RenderSettings(epp_cluster_role_name="epp")


def rules_of(document: Object) -> Rules[Any]:
    found = served(legacy_kinds=True)
    return next(each for each in found if each.type_.KIND.name == document["kind"])


def verdict(
    new: Object,
    old: Object | None = None,
    *,
    user: str = "alice",
    settings: RenderSettings = SETTINGS,
    **context: Any,
) -> Decision:
    """The verdict on a document, or on a change of it."""
    at = ReviewContext(settings, user, OPERATOR, **context)
    text = msgspec.Raw(msgspec.json.encode(old)) if old is not None else None
    return decide(rules_of(new), msgspec.Raw(msgspec.json.encode(new)), text, at)


def review(new: Any, old: Any = None, *, operation: str = "", user: str = "alice", **request: Any) -> bytes:
    asked = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": operation or ("UPDATE" if old is not None else "CREATE"),
        "namespace": "lab",
        "name": "chat",
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        **request,
    }
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "request": asked})


def token(**claims: Any) -> str:
    """A header with a token of that user."""
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer head.{middle}.signature"
