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

    def problems(self, found: R, find: Callable[[R], tuple[Problem, ...]]) -> tuple[Problem, ...]:
        """What `find` finds wrong with an object; it is not asked when that is known to be nothing."""
        fingerprint = fingerprint_of(found)
        return (
            ()
            if self._is_known(found, fingerprint)
            else self._noted(found, fingerprint, find(found))
        )

    async def problems_by(
        self, heavy: Offload, found: R, find: Callable[[R], tuple[Problem, ...]]
    ) -> tuple[Problem, ...]:
        """The same, with the mistakes of a large object found in a process of its own.

        Raises:
            WorkEnded: that took too much time or memory.
            WorkBusy: there is too much such work now.
        """
        fingerprint = fingerprint_of(found)
        if self._is_known(found, fingerprint):
            return ()
        return self._noted(found, fingerprint, await heavy.do(found, find, found))

    def forget(self, uid: str) -> None:
        """Remember nothing of an object that is gone."""
        self._known.forget(uid)

    def _is_known(self, found: Resource, fingerprint: bytes) -> bool:
        return self._known.get(found.metadata.uid) == fingerprint

    def _noted(
        self, found: Resource, fingerprint: bytes, problems: tuple[Problem, ...]
    ) -> tuple[Problem, ...]:
        if not problems:
            self._known.put(found.metadata.uid, fingerprint)
        return problems
