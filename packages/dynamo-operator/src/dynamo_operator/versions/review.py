"""The answer to a ConversionReview, with which the API server asks for objects in another version."""

from typing import Final

from dynamo_operator.versions.conversion import convert
from dynamo_operator.versions.shapes import ANYTHING, TEXT, ConversionError, ListOf, value
from kube_runtime.types.meta import MESSAGE_LIMIT, Object, cut

_REVIEW: Final = value(request=value(uid=TEXT, desiredAPIVersion=TEXT, objects=ListOf(ANYTHING)))


def review(document: object) -> Object:
    """The review with the response: all objects in the same order, or the first error and none of them."""
    try:
        request = _REVIEW.read(document).get("request", {})
    except ConversionError as error:
        return _answer("", _failure(str(error)))
    converted = []
    for body in request.get("objects", []):
        try:
            converted.append(convert(body, request.get("desiredAPIVersion", "")))
        except ConversionError as error:
            return _answer(request.get("uid", ""), _failure(f"{_title(body)}: {error}"))
    success = {"result": {"status": "Success"}, "convertedObjects": converted}
    return _answer(request.get("uid", ""), success)


def _answer(uid: str, response: Object) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {"uid": uid, **response},
    }


def _failure(message: str) -> Object:
    return {"result": {"status": "Failure", "message": cut(message, MESSAGE_LIMIT)}}


def _title(body: object) -> str:
    """Kind, namespace and name, such as `DynamoGraphDeployment team-a/chat`, if the object has them."""
    if not isinstance(body, dict):
        return "object"
    metadata = body.get("metadata")
    names = (metadata.get(field) for field in ("namespace", "name")) if isinstance(metadata, dict) else ()
    key = "/".join(name for name in names if isinstance(name, str) and name)
    kind = body.get("kind")
    return " ".join(part for part in (kind if isinstance(kind, str) else "object", key) if part)
