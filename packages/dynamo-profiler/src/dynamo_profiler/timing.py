"""How long one engine takes: computing, reading memory, talking to the other GPUs, and starting kernels.

With P active parameters, W bytes of weights, K bytes of cache per token, L layers of width d, and an engine
of g GPUs that together compute F operations, read B and exchange N bytes per second:

    F = g · peak · 0.48 (twice the peak for parameters of 8 bits)    B = g · bandwidth · 0.9
    N = link · 0.33 per GPU                                            fixed = L · 91 µs
    x(n) = 8·L·n·d·(g-1)/g / N                                         two sums over all GPUs in each layer
    prefill of s tokens       t(s) = max(2·P·s / F, W / B) + 2·L·d·s² / (g · peak · 0.33) + x(s) + fixed
    first token                      t(s) + 8.7 ms
    decode of b answers at context c, a step  = (W' + b·c·K) / B + 2·P·b / F + x(b) + fixed
    tokens in the cache                       = (0.9 · g · memory - W) / K

A token costs two operations for each parameter, and attention two for each pair of tokens and unit
of width, as half of the pairs are masked. A mixture of experts reads W' of its weights, more the more
answers there are: the share of the active ones for each answer, and never more than all.

An engine may also have several lanes, each with a part of its answers: the stages of a pipeline, which hold
one part of the layers each, and copies of attention (data parallel), which share the experts of a mixture.
A lane computes with the GPUs of one tensor-parallel group; experts are read and computed by the GPUs of all
copies.

Source of 0.48, 0.33, 0.33, 91 µs and 8.7 ms: fitted to the 144 measured points of docs/profiler-accuracy.md,
which says how well they predict sizes of engines, models and GPUs that they were not fitted to. 0.9 is not:
memory is read at that share of its peak by any streaming kernel, and a fit of it is not determined by the
points.
"""

from dataclasses import dataclass
from typing import ClassVar

from dynamo_profiler.engine import NETWORK_BYTES_PER_SECOND, Accuracy, Engine

COMPUTE_EFFICIENCY = 0.48
ATTENTION_EFFICIENCY = 0.33
LINK_EFFICIENCY = 0.33
EXPERT_EFFICIENCY = 0.12
"""Of computing experts, of which each sees few tokens of a prompt. Source: fitted to gpt-oss-120b on H100."""
BANDWIDTH_EFFICIENCY = 0.9
LAYER_SECONDS = 91e-6
"""Of starting the kernels of one layer, and of waiting for the other GPUs, whatever they compute."""
ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class FormulaEngine(Engine):
    """An engine whose times come from the formulas above."""

    source: ClassVar[str] = "formulas"
    accuracy: ClassVar[Accuracy] = Accuracy(ttft=0.4, itl=0.2)
    """Median errors for models and GPUs that were left out of the fit: docs/profiler-accuracy.md."""
    margin: ClassVar[Accuracy] = Accuracy(ttft=1.0, itl=0.2)
    """What 81 % of the times to the first token need there, and 96 % of those between tokens."""

    def prefill_seconds(self, tokens: float) -> float:
        """The time from one prompt's start to its end, in an engine that does nothing else."""
        shape = self.shape
        pairs = 2 * shape.layers * shape.width * tokens**2
        attention = pairs / (self.cut.tensor * self.gpu.flops * ATTENTION_EFFICIENCY)
        slower = COMPUTE_EFFICIENCY / EXPERT_EFFICIENCY - 1
        computing = self._computing_seconds(tokens)
        computing += 2 * shape.active_routed * tokens * slower / (self._flops * self.cut.data)
        reading = self._reading_seconds(shape.routed_bytes)
        return max(computing, reading) + attention + self._exchange_seconds(tokens) + self._fixed

    def step_seconds(self, answers: float, context: float) -> float:
        """The time in which each of so many answers gets its next token."""
        shape, own = self.shape, answers / self.lanes
        # Each answer needs some of the experts; those of all copies are read once.
        share = min(1, answers / self.cut.pipeline * shape.active / shape.parameters)
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
        """For all weights outside of experts, and so many bytes of experts."""
        rest = self.shape.weight_bytes - self.shape.routed_bytes
        return (rest + experts / self.cut.data) / self._bytes_per_second

    def _exchange_seconds(self, tokens: float) -> float:
        """The time in which all GPUs know the sums of all, twice in each layer; stages hand over."""
        sent = tokens * self.shape.width * ACTIVATION_BYTES
        sums = 2 * self.shape.layers * 2 * sent
        spread = self.cut.tensor * self.cut.data
        speed = self.gpu.link_bytes_per_second * LINK_EFFICIENCY
        if spread > self.gpus / self.cut.nodes:
            speed = NETWORK_BYTES_PER_SECOND
        handed = (self.cut.pipeline - 1) * sent / NETWORK_BYTES_PER_SECOND
        return sums * (spread - 1) / spread / speed + handed

    @property
    def _fixed(self) -> float:
        return self.shape.layers * LAYER_SECONDS

    @property
    def _flops(self) -> float:
        is_doubled = self.gpu.has_fp8 and self.shape.bytes_per_parameter == 1
        return self.cut.tensor * self.gpu.flops * COMPUTE_EFFICIENCY * (2 if is_doubled else 1)

    @property
    def _bytes_per_second(self) -> float:
        return self.cut.tensor * self.gpu.bytes_per_second * BANDWIDTH_EFFICIENCY
