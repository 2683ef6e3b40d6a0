"""Remembers what was found without mistakes: most reconciles of an object come from a child's status.

To look through a spec for mistakes costs a fifth of such a reconcile (`make bench ARGS="--only micro"`), and
the same spec has the same mistakes. It is kept in memory only: what is forgotten is looked through again.
"""

from collections.abc import Callable
from typing import TypeVar

from dynamo_graphs.validation import Problem
from dynamo_operator.reconcile.offload import Offload
from kube_runtime.apply.drift import fingerprint_of
from kube_runtime.apply.suppression import Recent
from kube_runtime.types.meta import Resource

R = TypeVar("R", bound=Resource)

REMEMBERED = 16_384
"""Objects of one controller."""


class ValidationCache:
    """Finds the mistakes of objects, of the same content only once.

    `find` may depend on the object's labels, annotations, owner references and spec, on what an object never
    changes, such as its name, and on what stays the same as long as this process lives.
    """

    def __init__(self) -> None:
        self._known: Recent[bytes] = Recent(REMEMBERED)

    async def problems_by(
        self, offload: Offload, resource: R, find: Callable[[R], tuple[Problem, ...]]
    ) -> tuple[Problem, ...]:
        """What `find` finds wrong with an object; it is not asked when that is known to be nothing.

        Raises:
            WorkEnded: that took too much time or memory.
            WorkBusy: there is too much such work now.
        """
        uid, fingerprint = resource.metadata.uid, fingerprint_of(resource)
        if self._known.get(uid) == fingerprint:
            return ()
        problems = await offload.do(resource, find, resource)
        if not problems:
            self._known.put(uid, fingerprint)
        return problems

    def forget(self, uid: str) -> None:
        """Remember nothing of an object that is gone."""
        self._known.forget(uid)
