"""What a request asked for, what its graph does, and what to do about the difference. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.plan.request import accepted_spec
from dynamo_profiler.configuration import Targets, targets_of
from dynamo_profiler.section import Section
from dynamoctl.load import Load
from kube_runtime.errors import ConfigError

_NOTABLE = 1.1
"""Times the length or the load that was promised; below it a target is not missed for this reason."""
_MOST_PER_SECOND = 1e6


@dataclass(frozen=True, slots=True)
class Promise:
    """What a graph was chosen for. `requests_per_second` None means: the request does not say."""

    targets: Targets
    requests_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A target and the mean that was measured. Units: seconds; None means: nothing to measure."""

    name: str
    target: float
    measured: float | None

    @property
    def is_missed(self) -> bool:
        """Whether the mean is above the target."""
        return self.measured is not None and self.measured > self.target

    @property
    def verdict(self) -> str:
        """Whether the target is met, and by how much it is missed."""
        if self.measured is None:
            return "not measured"
        if not self.is_missed:
            return "met"
        return f"missed by {self.measured / self.target - 1:.0%}"


def promise_of(request: DynamoGraphDeploymentRequest) -> Promise:
    """What the request was accepted with.

    Raises:
        ConfigError: a target is not a number that a profiler takes, or the spec is missing.
    """
    try:
        spec = accepted_spec(request)
    except ValueError:
        raise ConfigError("spec", "is missing") from None
    whole = Section(spec.profiling_config.config or {})
    targets = targets_of(whole.section("sla"))
    analytic, rate = whole.section("analytic"), None
    if analytic.has("requestsPerSecond"):
        rate = analytic.number("requestsPerSecond", 1, most=_MOST_PER_SECOND)
    if whole.mistakes:
        raise ConfigError("spec.profilingConfig.config", "; ".join(whole.mistakes))
    return Promise(targets, rate)


def checks(promise: Promise, load: Load) -> tuple[Check, Check]:
    """Both targets with what was measured."""
    targets = promise.targets
    return Check("TTFT", targets.ttft, load.ttft), Check("ITL", targets.itl, load.itl)


def advice(promise: Promise, load: Load, graph: DynamoGraphDeployment) -> list[str]:
    """What to do about the targets that are missed; nothing if all are met.

    A graph that gets other requests than it was chosen for needs another choice, or more replicas. With
    the promised ones its engines are slower than predicted, or requests wait for each other.
    """
    missed = [each for each in checks(promise, load) if each.is_missed]
    if not missed:
        return []
    found = list(_other_lengths(promise.targets, load))
    rate, promised = load.requests, promise.requests_per_second
    if rate is not None and promised is not None and rate > promised * _NOTABLE:
        scale = ", ".join(_scaled(each, graph, rate / promised) for each in missed)
        found.append(f"{rate:.3g} requests/s come, and the graph is for {promised:g}: {scale}")
    if found:
        return found
    if load.in_flight is not None and load.in_flight <= 1:
        text = "requests do not wait for each other, so replicas do not help: the engine is slower than "
        return [
            f"{text}predicted; create a request with a larger analytic.margin or a stricter target"
        ]
    scale = ", ".join(_scaled(each, graph, 1) for each in missed)
    return [f"the requests are those that the graph is for, and wait for each other: {scale}"]


def _other_lengths(targets: Targets, load: Load) -> Iterator[str]:
    pairs = (("prompts", "isl", targets.isl, load.isl), ("answers", "osl", targets.osl, load.osl))
    for what, key, promised, measured in pairs:
        if measured is not None and measured > promised * _NOTABLE:
            yield (
                f"{what} have {measured:.0f} tokens on average, and the graph is for {promised}: "
                f"create a request with sla.{key}: {math.ceil(measured)}"
            )


def _scaled(check: Check, graph: DynamoGraphDeployment, factor: float) -> str:
    """The command that gives the workers which a target depends on more replicas, at least one."""
    half = "prefill" if check.name == "TTFT" else "decode"
    workers = {
        key: each for key, each in graph.spec.services.items() if each.component_type == "worker"
    }
    keys = [key for key, each in workers.items() if each.sub_component_type == half]
    keys = keys or sorted(workers) or ["SERVICE"]
    service = workers.get(keys[0])
    now = (service.replicas if service else None) or 1
    wanted = max(now + 1, math.ceil(now * factor))
    return f"`dynamoctl scale {graph.metadata.name}/{keys[0]} --replicas {wanted}`"
