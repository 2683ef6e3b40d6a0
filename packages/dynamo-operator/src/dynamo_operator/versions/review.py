"""The answer to a ConversionReview, with which the API server asks for objects in another version."""

import time
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Raw

from dynamo_operator.versions.conversion import convert
from dynamo_operator.versions.shapes import ConversionError
from kube_runtime.apply.suppression import Recent
from kube_runtime.types.meta import MESSAGE_LIMIT, Object, Struct, cut, decoder_of
from kube_runtime.wire import UNREADABLE

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"


class ConversionRequest(Struct):
    """The objects to convert, each as JSON text, and the version in which they are wanted."""

    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion", default="")
    objects: tuple[Raw, ...] = ()


class _Review(Struct):
    api_version: str
    kind: str
    request: ConversionRequest


class NotAConversion(Exception):
    """The body is not a supported ConversionReview; the message says why."""


_REVIEWS = decoder_of(_Review)
_SLICE_SECONDS: Final = 0.01
"""Between objects; one object of megabytes takes longer."""

_REMEMBERED: Final = 4096
"""Answers: of the graphs of a large cluster, 10 MB."""
_LONGEST_REMEMBERED: Final = 8 * 1024
"""In bytes of an answer, so that all of them have at most 32 MiB."""


class Converter:
    """Converts objects, each as JSON text, and remembers the answers.

    Each list or watch in the version that is not stored asks for the same objects again.
    """

    def __init__(self) -> None:
        self._answers = Recent[Raw](_REMEMBERED)

    def converted(self, text: Raw, to: str) -> Raw:
        """The object in the version `to`. Raises ConversionError."""
        key = blake2b(text, digest_size=16).digest(), to
        answer = self._answers.get(key)
        if answer is None:
            answer = _converted(text, to)
            if memoryview(answer).nbytes <= _LONGEST_REMEMBERED:
                self._answers.put(key, answer)
        return answer


def conversion_in(body: bytes) -> ConversionRequest:
    """Decode the request in a body. The objects stay text, so that this is quick for any number of them.

    Raises:
        NotAConversion: the body has none.
    """
    try:
        review = _REVIEWS.decode(body)
    except UNREADABLE as error:
        raise NotAConversion(f"invalid {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise NotAConversion(f"expected {KIND} of {API_VERSION}, got {review.kind} of {review.api_version}")
    return review.request


# A list of a kind is one review of all its objects: thousands of graphs are tens of megabytes. So one object
# at a time is decoded, and its answer kept as text.
class Conversion:
    """A review that is answered in slices: all objects in the same order, or the first error and none."""

    def __init__(self, request: ConversionRequest, converter: Converter) -> None:
        self._request = request
        self._converter = converter
        self._converted: list[Raw] = []
        self.failure = ""
        """Why the request fails; "" if it does not."""

    def answer(self) -> bytes | None:
        """Convert for a short time. Returns the body of the response, None until the next slice."""
        until = time.monotonic() + _SLICE_SECONDS
        for text in self._request.objects[len(self._converted) :]:
            try:
                self._converted.append(self._converter.converted(text, self._request.desired_api_version))
            except ConversionError as error:
                self.failure = cut(str(error), MESSAGE_LIMIT)
                break
            if time.monotonic() > until:
                return None
        if self.failure:
            return self._response({"result": {"status": "Failure", "message": self.failure}})
        return self._response({"result": {"status": "Success"}, "convertedObjects": self._converted})

    def _response(self, result: Object) -> bytes:
        response = {"uid": self._request.uid, **result}
        return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _converted(text: Raw, to: str) -> Raw:
    document = None
    try:
        document = msgspec.json.decode(text)
        return Raw(msgspec.json.encode(convert(document, to)))
    except ConversionError as error:
        raise ConversionError(f"{_title(document)}: {error}") from None
    except (*UNREADABLE, ValueError, OverflowError) as error:  # such as an integer of more than 64 bits
        raise ConversionError(f"{_title(document)}: {error}") from None


def _title(body: object) -> str:
    """Kind, namespace and name, such as `DynamoGraphDeployment team-a/chat`, if the object has them."""
    if not isinstance(body, dict):
        return "object"
    metadata = body.get("metadata")
    names = (metadata.get(field) for field in ("namespace", "name")) if isinstance(metadata, dict) else ()
    key = "/".join(name for name in names if isinstance(name, str) and name)
    kind = body.get("kind")
    return " ".join(part for part in (kind if isinstance(kind, str) else "object", key) if part)
