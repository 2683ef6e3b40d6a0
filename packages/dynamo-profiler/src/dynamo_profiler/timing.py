"""How long one engine takes: computing, reading memory, talking to the other GPUs, and starting kernels.

With P active parameters, W bytes of weights, K bytes of cache per token, L layers of width d, and an engine
of g GPUs that together compute F operations, read B and exchange N bytes per second:

    F = g · peak · 0.48 (twice the peak for parameters of 8 bits)    B = g · bandwidth · 0.9
    N = link · 0.33 per GPU                                            fixed = L · 93 µs
    x(n) = 8·L·n·d·(g-1)/g / N                                         two sums over all GPUs in each layer
    prefill of s tokens       t(s) = max(2·P·s / F, W / B) + 2·L·d·s² / (g · peak · 0.33) + x(s) + fixed
    first token                      t(s) + 8.7 ms
    decode of b answers at context c, a step  = (W' + b·c·K) / B + 2·P·b / F + x(b) + fixed
    tokens in the cache                       = (0.9 · g · memory - W) / K

A token costs two operations for each parameter, and attention two for each pair of tokens and unit
of width, as half of the pairs are masked. A mixture of experts reads W' of its weights, more the more
answers there are: the share of the active ones for each answer, and never more than all.

Source of 0.48, 0.33, 0.33, 93 µs and 8.7 ms: fitted to the 144 measured points of docs/profiler-accuracy.md,
which says how well they predict sizes of engines that they were not fitted to. 0.9 is not: memory is read at
that share of its peak by any streaming kernel, and a fit of it is not determined by the points.
"""

import math
from dataclasses import dataclass

from dynamo_profiler.gpus import Gpu
from dynamo_profiler.shape import Shape

COMPUTE_EFFICIENCY = 0.48
ATTENTION_EFFICIENCY = 0.33
LINK_EFFICIENCY = 0.33
BANDWIDTH_EFFICIENCY = 0.9
LAYER_SECONDS = 93e-6
"""Of starting the kernels of one layer, and of waiting for the other GPUs, whatever they compute."""
FIRST_TOKEN_SECONDS = 8.7e-3
"""Of a request outside of the engine's steps: HTTP, tokens, queues between processes."""
ACTIVATION_BYTES = 2
USABLE_MEMORY = 0.9
SWEEP_ANSWER = 500
"""Tokens of the answers of a sweep. Source: a context of 350 tokens is a prompt of 100 in the tables."""
NETWORK_BYTES_PER_SECOND = 50e9
"""Of one GPU's network card, 400 Gbit/s, over which prefill hands its cache to decode."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One copy of a model on some GPUs, over which it is cut by tensor parallelism. Units: seconds."""

    shape: Shape
    gpu: Gpu
    gpus: int

    @property
    def usable_bytes(self) -> float:
        """Memory for weights and cache."""
        return USABLE_MEMORY * self.gpus * self.gpu.memory_bytes

    @property
    def cache_tokens(self) -> int:
        """How many tokens the cache holds; less than 1 if the weights alone do not fit."""
        free = self.usable_bytes - self.shape.weight_bytes
        return math.floor(free / self.shape.cache_bytes_per_token)

    def prefill_seconds(self, tokens: float) -> float:
        """The time that one prompt takes of an engine that does nothing else."""
        shape = self.shape
        pairs = 2 * shape.layers * shape.width * tokens**2
        attention = pairs / (self.gpus * self.gpu.flops * ATTENTION_EFFICIENCY)
        computing = 2 * shape.active * tokens / self._flops
        reading = shape.weight_bytes / self._bytes_per_second
        return max(computing, reading) + attention + self._exchange_seconds(tokens) + self._fixed

    def first_token_seconds(self, tokens: float) -> float:
        """The time to the first token of one request, alone on the engine."""
        return self.prefill_seconds(tokens) + FIRST_TOKEN_SECONDS

    def step_seconds(self, answers: float, context: float) -> float:
        """The time in which each of so many answers gets its next token."""
        shape = self.shape
        share = min(1, answers * shape.active / shape.parameters)
        read = shape.weight_bytes * share + answers * context * shape.cache_bytes_per_token
        computing = 2 * shape.active * answers / self._flops
        return (
            read / self._bytes_per_second
            + computing
            + self._exchange_seconds(answers)
            + self._fixed
        )

    def burst_seconds(self, answers: float, context: float) -> float:
        """The time between two tokens as sweeps measure it: so many requests at once, on one engine.

        While an answer grows, the engine computes half of the other prompts on average. That of a sweep has
        `SWEEP_ANSWER` tokens, and its context is the prompt and half of the answer.
        """
        prompt = max(1.0, context - SWEEP_ANSWER / 2)
        others = (answers - 1) / 2 * self.prefill_seconds(prompt)
        return self.step_seconds(answers, context) + others / SWEEP_ANSWER

    def transfer_seconds(self, tokens: float) -> float:
        """The time in which the cache of one prompt gets to another engine."""
        size = tokens * self.shape.cache_bytes_per_token
        return size / (self.gpus * NETWORK_BYTES_PER_SECOND)

    def _exchange_seconds(self, tokens: float) -> float:
        """The time in which all GPUs know the sums of all, twice in each layer."""
        sent = 2 * self.shape.layers * 2 * tokens * self.shape.width * ACTIVATION_BYTES
        speed = self.gpu.link_bytes_per_second * LINK_EFFICIENCY
        return sent * (self.gpus - 1) / self.gpus / speed

    @property
    def _fixed(self) -> float:
        return self.shape.layers * LAYER_SECONDS

    @property
    def _flops(self) -> float:
        is_doubled = self.gpu.has_fp8 and self.shape.bytes_per_parameter == 1
        return self.gpus * self.gpu.flops * COMPUTE_EFFICIENCY * (2 if is_doubled else 1)

    @property
    def _bytes_per_second(self) -> float:
        return self.gpus * self.gpu.bytes_per_second * BANDWIDTH_EFFICIENCY
