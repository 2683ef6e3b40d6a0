"""One copy of a model on some GPUs: how it is split over them, its memory, and how long it takes.

Step times come from the formulas here or from the measured kernels of AI Configurator (`kernels`).
Both share what is here: memory, the overhead of a request, and the queueing of prompts.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dynamo_profiler.shape import Gpu, Shape

FIRST_TOKEN_SECONDS = 8.7e-3
"""Overhead of a request outside of the engine's steps: HTTP, tokenization, queues between processes."""
USABLE_MEMORY = 0.9
NETWORK_BYTES_PER_SECOND = 50e9
"""One GPU's network card, 400 Gbit/s, over which prefill hands its KV cache to decode."""
PROMPTS_IN_FRONT = 0.2
"""A prompt waits for this many others, times the square root of the batch. Source: fitted to the tables of
Llama 3.1 70B on H100 and H200 in docs/profiler-accuracy.md."""


class Layout(NamedTuple):
    """How a model is split over GPUs: the sizes of tensor, pipeline and data parallelism.

    `tensor` GPUs compute each layer together, each of the `pipeline` stages has a part of the layers, and the
    `data` copies of attention share the experts of a mixture. The GPUs are on that many `nodes`.
    """

    tensor: int
    pipeline: int = 1
    data: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the whole engine."""
        return self.tensor * self.pipeline * self.data

    def __str__(self) -> str:
        """The sizes, for example `tp4` or `tp8 pp2`."""
        sizes = [("tp", self.tensor), ("pp", self.pipeline), ("dp", self.data)]
        return " ".join(f"{name}{size}" for name, size in sizes if size > 1 or name == "tp")


class Accuracy(NamedTuple):
    """A share for the time to first token, and one for the time between tokens."""

    ttft: float
    itl: float


@dataclass(frozen=True, slots=True)
class Engine(ABC):
    """A model on some GPUs. Times are in seconds; a batch is the requests that are decoded together."""

    source: ClassVar[str]
    """Where its times come from, in one word."""
    accuracy: ClassVar[Accuracy]
    """The median error of its times."""
    within: ClassVar[Accuracy]
    """The share of measured times that are not above the prediction with that error added."""

    shape: Shape
    gpu: Gpu
    layout: Layout

    @abstractmethod
    def prefill_seconds(self, tokens: float) -> float:
        """The time that an otherwise idle engine takes for one prompt."""

    @abstractmethod
    def step_seconds(self, batch: float, context: float) -> float:
        """The time of one decode step: one more token for each request of the batch."""

    @property
    def gpus(self) -> int:
        """GPUs of the whole engine."""
        return self.layout.gpus

    @property
    def lanes(self) -> int:
        """How many parts of a batch the engine works on in parallel."""
        return self.layout.pipeline * self.layout.data

    @property
    def usable_bytes(self) -> float:
        """Memory for weights and KV cache."""
        return USABLE_MEMORY * self.gpus * self.gpu.memory_bytes

    @property
    def stored_bytes(self) -> float:
        """The size of the weights. Each copy of attention has its own, except for the experts."""
        rest = self.shape.weight_bytes - self.shape.routed_bytes
        return self.shape.routed_bytes + rest * self.layout.data

    @property
    def cache_tokens(self) -> int:
        """How many tokens fit into the KV cache; less than 1 if the weights alone do not fit."""
        free = self.usable_bytes - self.stored_bytes
        return math.floor(free / self.shape.cache_bytes_per_token)

    def prompt_seconds(self, tokens: float) -> float:
        """The time from one prompt to the next; shorter than one prompt takes if there are several lanes."""
        return self.prefill_seconds(tokens) / self.lanes

    def first_token_seconds(self, tokens: float) -> float:
        """The time to first token of a single request."""
        return self.prefill_seconds(tokens) + FIRST_TOKEN_SECONDS

    def busy_first_token_seconds(self, batch: float, tokens: float, context: float) -> float:
        """The time to first token with this many concurrent requests, whose prompts wait for each other."""
        alone, step = self.prefill_seconds(tokens), self.step_seconds(batch, context)
        wait = PROMPTS_IN_FRONT * math.sqrt(batch) * self.prompt_seconds(tokens)
        return FIRST_TOKEN_SECONDS + alone + wait + step

    def busy_step_seconds(self, batch: float, tokens: float, length: float) -> float:
        """The time between tokens where a new prompt follows each finished output of this length."""
        step = self.step_seconds(batch, tokens + length / 2)
        return step + batch * self.prompt_seconds(tokens) / length

    def transfer_seconds(self, tokens: float) -> float:
        """The time to send the KV cache of one prompt to another engine."""
        size = tokens * self.shape.cache_bytes_per_token
        return size / (self.gpus * NETWORK_BYTES_PER_SECOND)


def layouts(
    shape: Shape, min_gpus: int, max_gpus: int, per_node: int, *, nodes: int = 1
) -> tuple[Layout, ...]:
    """The possible layouts with `min_gpus` to `max_gpus` on a node, smallest and simplest first.

    Tensor parallel sizes divide the attention heads. On one node: tensor parallelism; for a mixture of
    experts also data-parallel attention. On several nodes: a pipeline with one stage per node; for a mixture
    also data-parallel attention over all nodes.
    """
    tensors = [size for size in _powers(min(max_gpus, per_node)) if shape.heads % size == 0]
    possible = [Layout(size) for size in tensors]
    if shape.routed:
        possible += [
            Layout(size, data=copies)
            for size in tensors
            for copies in _powers(min(max_gpus, per_node) // size)
            if copies > 1
        ]
    whole = [size for size in tensors if size == per_node]
    for count in _powers(nodes):
        if count > 1:
            possible += [Layout(size, pipeline=count, nodes=count) for size in whole]
            if shape.routed:
                possible += [Layout(size, data=per_node // size * count, nodes=count) for size in tensors]
    fitting = (layout for layout in possible if min_gpus <= layout.gpus)
    order = sorted(fitting, key=lambda layout: (layout.gpus, layout.nodes, -layout.tensor))
    return tuple(order)


def _powers(limit: int) -> list[int]:
    return [2**power for power in range(limit.bit_length())]


COMPUTE_EFFICIENCY = 0.48
ATTENTION_EFFICIENCY = 0.33
LINK_EFFICIENCY = 0.33
EXPERT_EFFICIENCY = 0.12
"""Lower, because each expert sees few tokens of a prompt. Source: fitted to gpt-oss-120b on H100."""
BANDWIDTH_EFFICIENCY = 0.9
LAYER_SECONDS = 91e-6
"""Starting the kernels of one layer and waiting for the other GPUs, whatever they compute."""
ACTIVATION_BYTES = 2


# With P active parameters, W bytes of weights, K bytes of cache per token, L layers of width d, and
# an engine of g GPUs that together compute F operations, read B and exchange N bytes per second:
#
#     F = g · peak · 0.48 (twice the peak for parameters of 8 bits)    B = g · bandwidth · 0.9
#     N = link · 0.33 per GPU                                            fixed = L · 91 µs
#     x(n) = 8·L·n·d·(g-1)/g / N                                         two sums over all GPUs in each layer
#     prefill of s tokens       t(s) = max(2·P·s / F, W / B) + 2·L·d·s² / (g · peak · 0.33) + x(s) + fixed
#     first token                      t(s) + 8.7 ms
#     one decode step of batch b at context c   = (W' + b·c·K) / B + 2·P·b / F + x(b) + fixed
#     tokens in the cache                       = (0.9 · g · memory - W) / K
#
# A token costs two operations for each parameter, and attention two for each pair of tokens and
# unit of width, as half of the pairs are masked. A mixture of experts reads W' of its weights, more
# the more requests are in a batch: the share of the active ones for each request, up to all.
#
# An engine may have several lanes, each with a part of the batch: the stages of a pipeline, each
# with a part of the layers, and data-parallel copies of attention, which share the experts of a
# mixture. A lane computes with the GPUs of one tensor-parallel group; the GPUs of all copies read
# and compute the experts.
#
# Source of 0.48, 0.33, 0.33, 91 µs and 8.7 ms: fitted to the 144 measured points of
# docs/profiler-accuracy.md, which has their errors for engine sizes, models and GPUs that they were
# not fitted to. The points do not determine 0.9: any streaming kernel reads memory at that share of
# its peak.
@dataclass(frozen=True, slots=True)
class FormulaEngine(Engine):
    """An engine whose times come from the formulas of this module."""

    source: ClassVar[str] = "formulas"
    accuracy: ClassVar[Accuracy] = Accuracy(ttft=0.4, itl=0.2)
    """Median errors for models and GPUs outside of the fit: docs/profiler-accuracy.md."""
    within: ClassVar[Accuracy] = Accuracy(ttft=0.48, itl=0.96)

    def prefill_seconds(self, tokens: float) -> float:
        """The time that an otherwise idle engine takes for one prompt."""
        shape = self.shape
        pairs = 2 * shape.layers * shape.width * tokens**2
        attention = pairs / (self.layout.tensor * self.gpu.flops * ATTENTION_EFFICIENCY)
        slower = COMPUTE_EFFICIENCY / EXPERT_EFFICIENCY - 1
        computing = self._computing_seconds(tokens)
        computing += 2 * shape.active_routed * tokens * slower / (self._flops * self.layout.data)
        reading = self._reading_seconds(shape.routed_bytes)
        return max(computing, reading) + attention + self._exchange_seconds(tokens) + self._fixed

    def step_seconds(self, batch: float, context: float) -> float:
        """The time of one decode step: one more token for each request of the batch."""
        shape, own = self.shape, batch / self.lanes
        # Each request needs some of the experts; the engine reads those of all copies once.
        share = min(1, batch / self.layout.pipeline * shape.active / shape.parameters)
        cached = own * context * shape.cache_bytes_per_token
        return (
            self._reading_seconds(shape.routed_bytes * share)
            + cached / self._bytes_per_second
            + self._computing_seconds(own)
            + self._exchange_seconds(own)
            + self._fixed
        )

    def _computing_seconds(self, tokens: float) -> float:
        return 2 * self.shape.active * tokens / self._flops

    def _reading_seconds(self, experts: float) -> float:
        """The time to read all weights outside of experts, and this many bytes of experts."""
        rest = self.shape.weight_bytes - self.shape.routed_bytes
        return (rest + experts / self.layout.data) / self._bytes_per_second

    def _exchange_seconds(self, tokens: float) -> float:
        """Two all-reduces in each layer, and the transfer from one pipeline stage to the next."""
        sent = tokens * self.shape.width * ACTIVATION_BYTES
        sums = 2 * self.shape.layers * 2 * sent
        spread = self.layout.tensor * self.layout.data
        speed = self.gpu.link_bytes_per_second * LINK_EFFICIENCY
        if spread > self.gpus / self.layout.nodes:
            speed = NETWORK_BYTES_PER_SECOND
        handed = (self.layout.pipeline - 1) * sent / NETWORK_BYTES_PER_SECOND
        return sums * (spread - 1) / spread / speed + handed

    @property
    def _fixed(self) -> float:
        return self.shape.layers * LAYER_SECONDS

    @property
    def _flops(self) -> float:
        is_doubled = self.gpu.has_fp8 and self.shape.bytes_per_parameter == 1
        return self.layout.tensor * self.gpu.flops * COMPUTE_EFFICIENCY * (2 if is_doubled else 1)

    @property
    def _bytes_per_second(self) -> float:
        return self.layout.tensor * self.gpu.bytes_per_second * BANDWIDTH_EFFICIENCY
