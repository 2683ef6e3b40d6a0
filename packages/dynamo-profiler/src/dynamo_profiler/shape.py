"""The size of a model: from its `config.json` if available, else from the number in its name.

A name alone gives the number of parameters, not their layout. A dense transformer of depth L and width d
has about 12·L·d² parameters, and the usual ones are about 128 times as wide as deep. That gives both.
Source: Kaplan et al. 2020, section 2.1; the ratio is that of Llama 2 7B to 70B and Qwen3 8B to 32B, within
a factor of two.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_profiler.model_config import described_by
from dynamo_profiler.refusal import Refusal
from kube_runtime.kind import Fields

HEAD_SIZE = 128
CACHE_BYTES = 2
"""Of one number in the key-value cache, which is bfloat16 unless an engine is configured otherwise."""

_ASPECT = 128
_GROUPED_HEADS = 8
_MOST_BILLIONS = 100_000
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_ACTIVE = re.compile(r"(?<![a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9])")
_FOUR_BITS = re.compile(r"(?<![a-z0-9])(?:(?:fp|nvfp|mxfp|int)4|4bit|awq|gptq|w4a16)(?![a-z0-9])")
_EIGHT_BITS = re.compile(r"(?<![a-z0-9])(?:(?:fp|int)8|8bit|w8a8)(?![a-z0-9])")
_ACTIVE_OF_MIXTURE = 2  # experts that see each token, of those that the name counts


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model matters to time and memory.

    `active` are the parameters that one token passes; all of them unless the model is a mixture of
    experts, of which `routed` are in experts. `width` is that of attention, all heads together.
    `heads` is 0 when only the name is known. `words` are the parameters of the embeddings, which
    quantised models keep in 16 bits. `windowed` layers remember only the last tokens.

    Units: parameters; bytes of one parameter as it is stored.
    """

    parameters: float
    active: float
    layers: int
    width: int
    cache_width: int
    bytes_per_parameter: float
    heads: int = 0
    longest_context: int = 0
    words: float = 0
    routed: float = 0
    windowed: int = 0

    @property
    def weight_bytes(self) -> float:
        """What all parameters take."""
        stored = self.bytes_per_parameter
        return (self.parameters - self.words) * stored + self.words * max(2, stored)

    @property
    def routed_bytes(self) -> float:
        """What the experts take, of which each token passes some."""
        return self.routed * self.bytes_per_parameter

    @property
    def active_routed(self) -> float:
        """The parameters of experts that one token passes."""
        return max(0.0, self.active - (self.parameters - self.routed))

    @property
    def cache_bytes_per_token(self) -> float:
        """What one token takes in the key-value cache: a key and a value in each layer that keeps all."""
        return 2 * max(1, self.layers - self.windowed) * self.cache_width * CACHE_BYTES


def shape_of(model: str, config: Fields | None, billions: float | None) -> Shape:
    """The shape of a model. `config` is its `config.json`, `billions` what the user says of its size.

    Raises:
        Refusal: the size of the model is unknown, or its layers are of a kind that the formulas do not cover.
    """
    described = described_by(config) if config else None
    parameters, active = _parameters(model, billions)
    if described is not None and billions is None:
        parameters, active = described.parameters, described.active
    elif described is not None:
        active = parameters * described.active / described.parameters
    if not parameters:
        raise Refusal(
            f"unknown size of model {model!r}: its name has no number such as 7B; set "
            "analytic.parametersBillions, or provide the model's config.json with "
            "deployment.modelCache"
        )
    if not 0 < parameters <= _MOST_BILLIONS * 1e9:
        raise Refusal(
            f"model {model!r}: {parameters / 1e9:g} billion parameters is not a plausible size"
        )
    bytes_ = _bytes_per_parameter(model, config or {})
    active = min(active or parameters, parameters)
    if described is not None:
        scale = parameters / described.parameters
        return Shape(
            parameters,
            active,
            described.layers,
            described.width,
            described.cache_width,
            bytes_,
            heads=described.heads,
            longest_context=described.longest_context,
            words=described.words * scale,
            routed=described.routed * scale,
            windowed=described.windowed,
        )
    layers = max(1, round((parameters / (12 * _ASPECT**2)) ** (1 / 3)))
    width = max(HEAD_SIZE, round(math.sqrt(parameters / (12 * layers)) / HEAD_SIZE) * HEAD_SIZE)
    # Of a mixture that only its name describes, all but what each token passes is taken for experts.
    return Shape(
        *(parameters, active, layers, width, min(width, _GROUPED_HEADS * HEAD_SIZE), bytes_),
        routed=parameters - active,
    )


def _parameters(model: str, billions: float | None) -> tuple[float, float]:
    """All parameters and the active ones, as far as the user and the name give them; 0 means: unknown."""
    name = model.lower().rpartition("/")[2]
    active = _ACTIVE.search(name)
    found = _SIZE.search(_ACTIVE.sub("", name))
    passed = float(active[1]) * 1e9 if active else 0.0
    if billions is not None:
        return billions * 1e9, passed
    if found is None:
        return 0.0, passed
    experts, number, unit = found.groups()
    each = float(number) * (1e9 if unit == "b" else 1e6)
    if experts is None:
        return each, passed
    return int(experts) * each, passed or min(_ACTIVE_OF_MIXTURE, int(experts)) * each


def _bytes_per_parameter(model: str, config: Fields) -> float:
    quantized: object = config.get("quantization_config")
    text = model.lower()
    if isinstance(quantized, Mapping):
        method = quantized.get("quant_method", "")
        text = f"{method} {quantized.get('bits', '')}bit"
    if _FOUR_BITS.search(text):
        return 0.5
    if _EIGHT_BITS.search(text):
        return 1
    return 4 if config.get("torch_dtype", config.get("dtype")) == "float32" else 2
