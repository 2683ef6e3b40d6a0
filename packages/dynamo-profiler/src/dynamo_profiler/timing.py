"""How long one engine takes: computing, reading memory, talking to the other GPUs, and starting kernels.

With P active parameters, W bytes of weights, K bytes of cache per token, L layers of width d, and an engine
of g GPUs that together compute F operations, read B and exchange N bytes per second:

    F = g · peak · 0.48 (twice the peak for parameters of 8 bits)    B = g · bandwidth · 0.9
    N = link · 0.33 per GPU                                            fixed = L · 91 µs
    x(n) = 8·L·n·d·(g-1)/g / N                                         two sums over all GPUs in each layer
    prefill of s tokens       t(s) = max(2·P·s / F, W / B) + 2·L·d·s² / (g · peak · 0.33) + x(s) + fixed
    first token                      t(s) + 8.7 ms
    one decode step of batch b at context c   = (W' + b·c·K) / B + 2·P·b / F + x(b) + fixed
    tokens in the cache                       = (0.9 · g · memory - W) / K

A token costs two operations for each parameter, and attention two for each pair of tokens and unit
of width, as half of the pairs are masked. A mixture of experts reads W' of its weights, more the more
requests are in a batch: the share of the active ones for each request, up to all.

An engine may have several lanes, each with a part of the batch: the stages of a pipeline, each with a part of
the layers, and data-parallel copies of attention, which share the experts of a mixture. A lane computes with
the GPUs of one tensor-parallel group; the GPUs of all copies read and compute the experts.

Source of 0.48, 0.33, 0.33, 91 µs and 8.7 ms: fitted to the 144 measured points of docs/profiler-accuracy.md,
which has their errors for engine sizes, models and GPUs that they were not fitted to. The points do not
determine 0.9: any streaming kernel reads memory at that share of its peak.
"""

from dataclasses import dataclass
from typing import ClassVar

from dynamo_profiler.engine import NETWORK_BYTES_PER_SECOND, Accuracy, Engine

COMPUTE_EFFICIENCY = 0.48
ATTENTION_EFFICIENCY = 0.33
LINK_EFFICIENCY = 0.33
EXPERT_EFFICIENCY = 0.12
"""Lower, because each expert sees few tokens of a prompt. Source: fitted to gpt-oss-120b on H100."""
BANDWIDTH_EFFICIENCY = 0.9
LAYER_SECONDS = 91e-6
"""Starting the kernels of one layer and waiting for the other GPUs, whatever they compute."""
ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class FormulaEngine(Engine):
    """An engine whose times come from the formulas of this module."""

    source: ClassVar[str] = "formulas"
    accuracy: ClassVar[Accuracy] = Accuracy(ttft=0.4, itl=0.2)
    """Median errors for models and GPUs outside of the fit: docs/profiler-accuracy.md."""
    margin: ClassVar[Accuracy] = Accuracy(ttft=1.0, itl=0.2)
    """Covers 81 % of the times to first token there, and 96 % of the times between tokens."""

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
