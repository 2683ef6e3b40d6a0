"""Remembers what was found without mistakes: most reconciles of an object come from a child's status.

To look through a spec for mistakes costs a fifth of such a reconcile (`make bench ARGS="--only micro"`), and
the same spec has the same mistakes. It is kept in memory only: what is forgotten is looked through again.
"""

from collections.abc import Callable
from typing import TypeVar

from dynamo_operator.kube.contained import fingerprint_of
from dynamo_operator.kube.restraint import Recent
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.validation import Problem

R = TypeVar("R", bound=Resource)

REMEMBERED = 16_384
"""Objects of one controller."""


class Sound:
    """Finds the mistakes of objects, of the same content only once.

    `find` may depend on the object's labels, annotations, owner references and spec, on what an object never
    changes, such as its name, and on what stays the same as long as this process lives.
    """

    def __init__(self) -> None:
        self._known: Recent[bytes] = Recent(REMEMBERED)

    def problems(self, found: R, find: Callable[[R], tuple[Problem, ...]]) -> tuple[Problem, ...]:
        """What `find` finds wrong with an object; it is not asked when that is known to be nothing."""
        uid, fingerprint = found.metadata.uid, fingerprint_of(found)
        if self._known.get(uid) == fingerprint:
            return ()
        problems = find(found)
        if not problems:
            self._known.put(uid, fingerprint)
        return problems
