"""How long one engine takes: computing and reading memory, each at its peak times what is reached of it.

With P active parameters, W bytes of weights, K bytes of cache per token, L layers of width d, and
an engine of g GPUs that together compute F operations and read B bytes per second:

    F = g · E(g) · peak · 0.7          B = g · E(g) · bandwidth · 0.8          E(g) = 0.95 ^ log2(g)
    prefill of s tokens                       = max((2·P·s + 2·L·d·s²) / F,  W / B)
    decode of b answers at context c, a step  = (W' + b·c·K) / B + 2·P·b / F
    tokens in the cache                       = (0.9 · g · memory - W) / K

A token costs two operations for each parameter, and attention two for each pair of tokens and unit
of width, as half of the pairs are masked. A mixture of experts reads W' of its weights, more the more
answers there are: the share of the active ones for each answer, and never more than all. In a prefill
the weights are read while computing; in a step much of the time goes into reading the cache, when
little is computed, so both count.

Source of 0.7, 0.8 and 0.95: the published estimate of AI Configurator for Qwen3-32B on H200 (prefill
on one GPU, decode on two); the formulas stay within a factor of 1.25 of it, which a test holds them to.
"""

import math
from dataclasses import dataclass

from dynamo_profiler.gpus import Gpu
from dynamo_profiler.shape import Shape

COMPUTE_EFFICIENCY = 0.7
BANDWIDTH_EFFICIENCY = 0.8
DOUBLING_EFFICIENCY = 0.95
USABLE_MEMORY = 0.9
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
        """The time for one prompt, alone on the engine."""
        shape = self.shape
        attention = 2 * shape.layers * shape.width * tokens**2
        computing = (2 * shape.active * tokens + attention) / self._flops
        return max(computing, shape.weight_bytes / self._bytes_per_second)

    def step_seconds(self, answers: float, context: float) -> float:
        """The time in which each of so many answers gets its next token."""
        shape = self.shape
        share = min(1, answers * shape.active / shape.parameters)
        read = shape.weight_bytes * share + answers * context * shape.cache_bytes_per_token
        computing = 2 * shape.active * answers / self._flops
        return read / self._bytes_per_second + computing

    def transfer_seconds(self, tokens: float) -> float:
        """The time in which the cache of one prompt gets to another engine."""
        size = tokens * self.shape.cache_bytes_per_token
        return size / (self.gpus * NETWORK_BYTES_PER_SECOND)

    @property
    def _flops(self) -> float:
        return self.gpu.flops * self._scale * COMPUTE_EFFICIENCY

    @property
    def _bytes_per_second(self) -> float:
        return self.gpu.bytes_per_second * self._scale * BANDWIDTH_EFFICIENCY

    @property
    def _scale(self) -> float:
        return float(self.gpus * DOUBLING_EFFICIENCY ** math.log2(self.gpus))
