"""Validate reviews: small ones in the event loop, larger ones in a worker process with limits.

Small means cheap: the rules take time in proportion to their input. Larger reviews are queued fairly among
clients, and among the namespaces of a client, so one client delays another by one review at most.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import structlog
from msgspec import Raw

from dynamo_graphs.validation import Problem
from dynamo_operator.admission.decision import ALLOWED, Decision, decide
from dynamo_operator.admission.review import Request
from dynamo_operator.admission.rules import RULES, ReviewContext, Rules, rules_of
from kube_runtime.controller.worker_pool import WorkEnded
from kube_runtime.serving.clients import FairSemaphore

T = TypeVar("T")

LARGE_REVIEW: Final = 32 * 1024
"""In bytes, old and new object together: larger ones are validated in a worker process."""

REVIEW_CPU_SECONDS: Final = 2.5
"""CPU seconds of one review in a worker process."""

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
    """Whether a request is validated in a worker process."""
    return (
        sum(len(memoryview(text)) for text in (request.object, request.old_object)) > LARGE_REVIEW
    )


@dataclass(frozen=True, slots=True)
class DecisionPool:
    """Validates requests by `rules`; `submit` runs large ones in a worker process.

    `is_excluded` returns whether another operator manages a namespace.
    """

    submit: Submit
    context_of: Callable[[Request], ReviewContext]
    is_excluded: Callable[[str], bool]
    rules: Sequence[Rules[Any]] = RULES
    turns: FairSemaphore = field(default_factory=lambda: FairSemaphore(AT_ONCE))

    async def decide(self, rules: Rules[Any], request: Request, client: str) -> Decision:
        """Validate a request by the rules of its kind.

        Raises:
            WorkBusy: too many reviews are queued.
        """
        if request.new is None or request.operation == "DELETE" or request.sub_resource:
            return ALLOWED  # no spec is stored
        log_fields = {"namespace": request.namespace, "name": request.name}
        if self.is_excluded(request.namespace):
            text = "skipping validation - namespace has namespace-restricted operator"
            _log.debug(text, kind=rules.type_.KIND.name, **log_fields)
            return ALLOWED
        text = f"validate {request.operation.lower()}"
        _log.debug(text, kind=rules.type_.KIND.name, **log_fields)
        if is_large(request):
            return await self._decide_in_worker(rules, request.new, request, client)
        return decide(rules, request.new, request.old, self.context_of(request))

    async def _decide_in_worker(
        self, rules: Rules[Any], new: Raw, request: Request, client: str
    ) -> Decision:
        old = None if request.old is None else bytes(memoryview(request.old))
        async with self.turns.slot(client, request.namespace):
            context = self.context_of(request)
            args = (rules.type_.KIND.name, bytes(memoryview(new)), old, context)
            tenant = f"{client} {request.namespace}"
            try:
                return await self.submit(
                    decide_in_worker, args, tenant=tenant, seconds=REVIEW_CPU_SECONDS
                )
            except WorkEnded as error:
                problem = Problem("document", f"the object is too expensive to validate: {error}")
                return Decision((problem,), reason="too_expensive")


def decide_in_worker(kind: str, new: bytes, old: bytes | None, context: ReviewContext) -> Decision:
    """Validate an object of a kind, as JSON text; for a worker process."""
    reviewed = rules_of(legacy_kinds=kind not in _TODAY)
    rules = next(rules for rules in reviewed if rules.type_.KIND.name == kind)
    return decide(rules, Raw(new), None if old is None else Raw(old), context)
