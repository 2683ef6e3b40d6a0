"""One order for all maps: equal settings are equal bytes however the user wrote them."""

import msgspec

from kube_runtime.kind import Object

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Object)


def canonical(wanted: Object) -> Object:
    """The object with every map sorted by key, as a copy that shares nothing.

    Through JSON and back, which is what it becomes anyway: ten times as fast as to sort map by map.
    """
    return _DECODER.decode(_ENCODER.encode(wanted))
