"""One copy of a model on some GPUs: what the search needs to know of it, wherever its times come from.

There are two sources: the formulas of `timing` and the measured kernels of AI Configurator (`kernels`). What
both have here is memory, the time of a request outside of the engine, and the wait of prompts for each other.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dynamo_profiler.gpus import Gpu
from dynamo_profiler.layouts import Layout
from dynamo_profiler.shape import Shape

FIRST_TOKEN_SECONDS = 8.7e-3
"""Of a request outside of the engine's steps: HTTP, tokens, queues between processes."""
USABLE_MEMORY = 0.9
SWEEP_ANSWER = 500
"""Tokens of the answers of a sweep. Source: a context of 350 tokens is a prompt of 100 in the tables."""
NETWORK_BYTES_PER_SECOND = 50e9
"""Of one GPU's network card, 400 Gbit/s, over which prefill hands its cache to decode."""
PROMPTS_IN_FRONT = 0.2
"""Times the root of the answers at once: the prompts that one waits for. Source: fitted to the tables of
Llama 3.1 70B on H100 and H200 in docs/profiler-accuracy.md."""


class Accuracy(NamedTuple):
    """An error of predictions, as a share of what was measured."""

    ttft: float
    itl: float


@dataclass(frozen=True, slots=True)
class Engine(ABC):
    """A model that is cut over GPUs. Units: seconds."""

    source: ClassVar[str]
    """What its times come from, in a word."""
    accuracy: ClassVar[Accuracy]
    """The error that half of its times have at most, as measured."""
    margin: ClassVar[Accuracy]
    """What is added to a prediction so that four of five measured times are within it, or more."""

    shape: Shape
    gpu: Gpu
    cut: Layout

    @abstractmethod
    def prefill_seconds(self, tokens: float) -> float:
        """The time from one prompt's start to its end, in an engine that does nothing else."""

    @abstractmethod
    def step_seconds(self, answers: float, context: float) -> float:
        """The time in which each of so many answers gets its next token."""

    @property
    def gpus(self) -> int:
        """Of the whole engine."""
        return self.cut.gpus

    @property
    def lanes(self) -> int:
        """Parts of the answers that are worked on at the same time."""
        return self.cut.pipeline * self.cut.data

    @property
    def layout(self) -> str:
        """How the model is cut, for example `tp4` or `tp8 pp2`."""
        parts = [("tp", self.cut.tensor), ("pp", self.cut.pipeline), ("dp", self.cut.data)]
        return " ".join(f"{name}{size}" for name, size in parts if size > 1 or name == "tp")

    @property
    def usable_bytes(self) -> float:
        """Memory for weights and cache."""
        return USABLE_MEMORY * self.gpus * self.gpu.memory_bytes

    @property
    def stored_bytes(self) -> float:
        """What the weights take: once, and what is outside of experts once for each copy of attention."""
        rest = self.shape.weight_bytes - self.shape.routed_bytes
        return self.shape.routed_bytes + rest * self.cut.data

    @property
    def cache_tokens(self) -> int:
        """How many tokens the cache holds; less than 1 if the weights alone do not fit."""
        free = self.usable_bytes - self.stored_bytes
        return math.floor(free / self.shape.cache_bytes_per_token)

    def prompt_seconds(self, tokens: float) -> float:
        """The time between two prompts in a row, which is less than one takes if there are lanes."""
        return self.prefill_seconds(tokens) / self.lanes

    def first_token_seconds(self, tokens: float) -> float:
        """The time to the first token of one request, alone on the engine."""
        return self.prefill_seconds(tokens) + FIRST_TOKEN_SECONDS

    def busy_first_token_seconds(self, answers: float, tokens: float, context: float) -> float:
        """The time to the first token among so many requests, whose prompts wait for each other."""
        alone, step = self.prefill_seconds(tokens), self.step_seconds(answers, context)
        wait = PROMPTS_IN_FRONT * math.sqrt(answers) * self.prompt_seconds(tokens)
        return FIRST_TOKEN_SECONDS + alone + wait + step

    def busy_step_seconds(self, answers: float, tokens: float, length: float) -> float:
        """The time between two tokens where a new prompt follows each of so many answers of a length."""
        step = self.step_seconds(answers, tokens + length / 2)
        return step + answers * self.prompt_seconds(tokens) / length

    def burst_seconds(self, answers: float, context: float) -> float:
        """The time between two tokens as sweeps measure it: so many requests at once, on one engine.

        While an answer grows, the engine computes half of the other prompts on average. That of a sweep has
        `SWEEP_ANSWER` tokens, and its context is the prompt and half of the answer.
        """
        prompt = max(1.0, context - SWEEP_ANSWER / 2)
        others = (answers - 1) / 2 * self.prompt_seconds(prompt)
        return self.step_seconds(answers, context) + others / SWEEP_ANSWER

    def transfer_seconds(self, tokens: float) -> float:
        """The time in which the cache of one prompt gets to another engine."""
        size = tokens * self.shape.cache_bytes_per_token
        return size / (self.gpus * NETWORK_BYTES_PER_SECOND)
