"""Which live objects need no write: those that say what was applied, and are remembered as such.

A hash of the desired object is kept in an annotation of the live one. An apply is due when the hash differs
(something else is desired) or when the live object no longer contains what is desired (drift). The memory is
only there to spend less time: without it, as after a restart, the answers are the same.
"""

from dataclasses import dataclass, field
from functools import partial

import msgspec

from kube_runtime.apply.drift import content, content_of, fingerprint_of, has_no_drift
from kube_runtime.apply.suppression import Recent
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

SETTLED_REMEMBERED = 32_768
"""Objects that were found settled; a graph of three services has thirteen."""


@dataclass(frozen=True, slots=True)
class SettledObjects:
    """What needs no write. `hash_annotation` is the key of the annotation with the hash."""

    hash_annotation: str
    # What our own last apply returned, for objects that the API server changes beyond recognition:
    # by uid, the hash that was applied and the content that came back. Empty in a normal cluster.
    _accepted: Recent[tuple[str, bytes]] = field(default_factory=Recent[tuple[str, bytes]])
    # By uid, the fingerprint of what was last found settled. Most reconciles find the same again, because
    # only a status has changed; to compare the contents costs a hundred times as much.
    _fingerprints: Recent[bytes] = field(default_factory=partial(Recent[bytes], SETTLED_REMEMBERED))

    def contains(self, live: Resource, body: Object, digest: str) -> bool:
        """Whether a live object is what an apply of `body`, whose hash is `digest`, would leave as it is."""
        if live.metadata.annotations.get(self.hash_annotation) != digest:
            return False
        # The digest is in the fingerprint too: it is an annotation of the live object.
        uid, fingerprint = live.metadata.uid, fingerprint_of(live)
        if self._fingerprints.get(uid) == fingerprint:
            return True
        found = content_of(live)
        if not has_no_drift(content(body), found) and self._accepted.get(uid) != (
            digest,
            msgspec.json.encode(found),
        ):
            return False
        self._fingerprints.put(uid, fingerprint)
        return True

    def accept(self, applied: Resource, body: Object, digest: str) -> None:
        """Take note of the answer to an apply, which counts as what is desired even if it is not."""
        found = content_of(applied)
        if not has_no_drift(content(body), found):
            self._accepted.put(applied.metadata.uid, (digest, msgspec.json.encode(found)))

    def forget(self, uid: str) -> None:
        """Remember nothing of an object that is gone."""
        self._accepted.forget(uid)
        self._fingerprints.forget(uid)
