"""Validate reviews: a small one in the event loop, a larger one in a separate process that can be ended.

Small means cheap: the rules take time in proportion to their input. A larger review waits for its turn among
the clients, and among the namespaces of one client, so that one client delays another by one review at most.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import structlog
from msgspec import Raw

from dynamo_graphs.validation import Problem
from dynamo_operator.admission.decision import ALLOWED, Decision, decide
from dynamo_operator.admission.review import Request
from dynamo_operator.admission.rules import RULES, Circumstances, Rules, rules_of
from kube_runtime.controller.worker_pool import WorkEnded
from kube_runtime.serving.clients import FairSemaphore

T = TypeVar("T")

LARGE_REVIEW: Final = 32 * 1024
"""In bytes: objects that are larger, both states together, are not validated in the event loop."""

JUDGE_SECONDS: Final = 2.5
"""CPU time of one review."""

AT_ONCE: Final = 2
_log = structlog.get_logger()
_TODAY: Final = frozenset(rules.type_.KIND.name for rules in RULES)


class Submit(Protocol):
    """Runs a function in another process; see `WorkerPool.submit`."""

    def __call__(
        self, function: Callable[..., T], args: tuple[object, ...], *, tenant: str, seconds: float
    ) -> Awaitable[T]:
        """Return the result of the function."""
        ...


def is_large(request: Request) -> bool:
    """Whether a request is not validated in the event loop."""
    return (
        sum(len(memoryview(text)) for text in (request.object, request.old_object)) > LARGE_REVIEW
    )


@dataclass(frozen=True, slots=True)
class DecisionPool:
    """Validates requests; `submit` is for large ones.

    `is_excluded` returns whether another operator manages a namespace. `rules` are those of
    the kinds that are reviewed.
    """

    submit: Submit
    circumstances: Callable[[Request], Circumstances]
    is_excluded: Callable[[str], bool]
    rules: Sequence[Rules[Any]] = RULES
    turns: FairSemaphore = field(default_factory=lambda: FairSemaphore(AT_ONCE))

    async def verdict(self, rules: Rules[Any], request: Request, client: str) -> Decision:
        """Validate a request by the rules of its kind.

        Raises:
            WorkBusy: there are too many reviews now.
        """
        if request.new is None or request.operation == "DELETE" or request.sub_resource:
            return ALLOWED  # no spec is stored
        at = {"namespace": request.namespace, "name": request.name}
        if self.is_excluded(request.namespace):
            text = "skipping validation - namespace has namespace-restricted operator"
            _log.debug(text, kind=rules.type_.KIND.name, **at)
            return ALLOWED
        text = f"validate {request.operation.lower()}"
        _log.debug(text, kind=rules.type_.KIND.name, **at)
        if is_large(request):
            return await self._apart(rules, request.new, request, client)
        return decide(rules, request.new, request.old, self.circumstances(request))

    async def _apart(self, rules: Rules[Any], new: Raw, request: Request, client: str) -> Decision:
        old = None if request.old is None else bytes(memoryview(request.old))
        async with self.turns.slot(client, request.namespace):
            at = self.circumstances(request)
            args = (rules.type_.KIND.name, bytes(memoryview(new)), old, at)
            tenant = f"{client} {request.namespace}"
            try:
                return await self.submit(
                    decide_in_worker, args, tenant=tenant, seconds=JUDGE_SECONDS
                )
            except WorkEnded as error:
                problem = Problem("document", f"the object is too expensive to validate: {error}")
                return Decision((problem,), reason="too_expensive")


def decide_in_worker(kind: str, new: bytes, old: bytes | None, at: Circumstances) -> Decision:
    """Validate an object of a kind, as JSON text; for a worker process."""
    reviewed = rules_of(legacy_kinds=kind not in _TODAY)
    rules = next(rules for rules in reviewed if rules.type_.KIND.name == kind)
    return decide(rules, Raw(new), None if old is None else Raw(old), at)
