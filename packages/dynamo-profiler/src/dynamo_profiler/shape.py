"""The size of a model: from the catalogue or its `config.json`, else from the number in its name.

A name gives the number of parameters only. A dense transformer of depth L and width d has about 12·L·d²
parameters, and is usually about 128 times as wide as deep, which gives L and d. Source: Kaplan et al. 2020,
section 2.1; the ratio is that of Llama 2 7B to 70B and Qwen3 8B to 32B, within a factor of two.

The fields of the file are those of transformers' `PretrainedConfig`. Models with layers other than full,
sliding-window or latent attention are refused by their keys, because an estimate would be wrong.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from dynamo_profiler import Refusal
from kube_runtime.types.meta import Fields

HEAD_SIZE = 128
CACHE_BYTES = 2
"""Bytes of one number in the KV cache, which is bfloat16 by default."""

_ASPECT = 128
_GROUPED_HEADS = 8
_MAX_BILLIONS = 100_000
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_ACTIVE = re.compile(r"(?<![a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9])")
_FOUR_BITS = re.compile(r"(?<![a-z0-9])(?:(?:fp|nvfp|mxfp|int)4|4bit|awq|gptq|w4a16)(?![a-z0-9])")
_EIGHT_BITS = re.compile(r"(?<![a-z0-9])(?:(?:fp|int)8|8bit|w8a8)(?![a-z0-9])")
_ACTIVE_OF_MIXTURE = 2  # experts per token, of those that the name counts
_MAX_COUNT = 10**8
_USUAL_ACTIVE = 2
"""Default of the experts per token. Source: Mixtral."""
_USUAL_LATENT_HEAD = 128
"""Default of the head size of latent attention. Source: DeepSeek V3."""
_UNCOVERED = (
    "mamba_",
    "ssm_",
    "linear_",
    "hybrid_",
    "index_",
    "block_configs",
    "conv_kernel",
    "attention_chunk",
)
"""Prefixes of the keys of layers with a state, of sparse and chunked attention, and of unequal layers."""
_SLIDING, _FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a model that determine time and memory.

    `active` parameters are used for each token: all of them, unless the model is a mixture of experts, which
    have `routed` parameters. `width` is that of attention, all heads together. `heads` is 0 if only the name
    is known. `words` are the parameters of the embeddings, which quantised models keep in 16 bits. `windowed`
    layers cache only the last tokens.

    Units: parameters; bytes of one stored parameter.
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
        """The size of all parameters."""
        stored = self.bytes_per_parameter
        return (self.parameters - self.words) * stored + self.words * max(2, stored)

    @property
    def routed_bytes(self) -> float:
        """The size of the experts."""
        return self.routed * self.bytes_per_parameter

    @property
    def active_routed(self) -> float:
        """The parameters of the experts of one token."""
        return max(0.0, self.active - (self.parameters - self.routed))

    @property
    def cache_bytes_per_token(self) -> float:
        """The size of one token in the KV cache: a key and a value in each layer that caches all tokens."""
        return 2 * max(1, self.layers - self.windowed) * self.cache_width * CACHE_BYTES


def shape_of(model: str, config: Fields | None, billions: float | None) -> Shape:
    """The shape of a model. `config` is its `config.json`, `billions` the configured number of parameters.

    Raises:
        Refusal: the size of the model is unknown, or the formulas do not cover its layers.
    """
    bytes_ = _bytes_per_parameter(model, config or {})
    described = _described(config, bytes_) if config else None
    parameters, active = _parameters(model, billions)
    if described is not None and billions is None:
        parameters, active = described.parameters, described.active
    elif described is not None:
        active = parameters * described.active / described.parameters
    if not parameters:
        raise Refusal(
            f'unknown size of model "{model}": its name has no number such as 7B; provide its '
            "config.json with deployment.modelCache, or set analytic.parametersBillions"
        )
    if not 0 < parameters <= _MAX_BILLIONS * 1e9:
        raise Refusal(f'model "{model}": {parameters / 1e9:g} billion parameters is not a plausible size')
    active = min(active or parameters, parameters)
    if described is not None:
        scale = parameters / described.parameters
        words, routed = described.words * scale, described.routed * scale
        return replace(described, parameters=parameters, active=active, words=words, routed=routed)
    layers = max(1, round((parameters / (12 * _ASPECT**2)) ** (1 / 3)))
    width = max(HEAD_SIZE, round(math.sqrt(parameters / (12 * layers)) / HEAD_SIZE) * HEAD_SIZE)
    # Of a mixture that only its name describes, all inactive parameters count as experts.
    return Shape(
        *(parameters, active, layers, width, min(width, _GROUPED_HEADS * HEAD_SIZE), bytes_),
        routed=parameters - active,
    )


def _described(config: Fields, bytes_per_parameter: float) -> Shape | None:
    """The shape in a `config.json`, without biases and norms, which are small; None for no transformer."""
    inner: object = config.get("text_config")
    fields: Fields = {**config, **(inner if isinstance(inner, Mapping) else {})}
    layers, hidden, heads = (
        _count(fields, name) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    if not (layers and hidden and heads):
        return None
    _refuse_uncovered(fields)
    attention, width, cache = _attention(fields, hidden, heads)
    one_table = hidden * _count(fields, "vocab_size")
    words = one_table if fields.get("tie_word_embeddings") is True else 2 * one_table
    mixed = min(layers, max(0, layers - _count(fields, "first_k_dense_replace")))
    experts, expert_width, passed, shared = _experts(fields, 4 * hidden)
    dense = 3 * hidden * (_count(fields, "intermediate_size") or 4 * hidden)
    routed = mixed * experts * 3 * hidden * expert_width
    kinds: object = fields.get("layer_types")
    sliding = kinds.count(_SLIDING) if isinstance(kinds, list) and _count(fields, "sliding_window") else 0
    outside = layers * attention + mixed * 3 * hidden * shared + words
    outside += (layers - mixed if experts else layers) * dense
    return Shape(
        parameters=float(outside + routed),
        active=float(outside + mixed * passed * 3 * hidden * expert_width),
        layers=layers,
        width=width,
        cache_width=cache,
        bytes_per_parameter=bytes_per_parameter,
        heads=heads,
        longest_context=_count(fields, "max_position_embeddings"),
        words=float(words),
        routed=float(routed),
        windowed=min(sliding, layers - 1),
    )


def _attention(fields: Fields, hidden: int, heads: int) -> tuple[int, int, int]:
    """One layer's attention: parameters, width, and half of the numbers that it caches for a token."""
    latent = _count(fields, "kv_lora_rank")
    if not latent:
        head = _count(fields, "head_dim") or max(1, hidden // heads)
        cache = (_count(fields, "num_key_value_heads") or heads) * head
        return 2 * hidden * (heads * head + cache), heads * head, cache
    # Latent attention caches one compressed vector for key and value together.
    rope = _count(fields, "qk_rope_head_dim")
    plain = _count(fields, "qk_nope_head_dim") or _USUAL_LATENT_HEAD
    value = _count(fields, "v_head_dim") or _USUAL_LATENT_HEAD
    rank = _count(fields, "q_lora_rank")
    queries = (hidden + heads * (plain + rope)) * rank if rank else hidden * heads * (plain + rope)
    keys = hidden * (latent + rope) + latent * heads * (plain + value)
    parameters = queries + keys + heads * value * hidden
    return parameters, heads * (plain + rope + value) // 2, (latent + rope + 1) // 2


def _experts(fields: Fields, default: int) -> tuple[int, int, int, int]:
    """The experts of a layer, the width of one, how many a token passes, and the width that all pass."""
    names = ("n_routed_experts", "num_experts", "num_local_experts")
    experts = next((count for name in names if (count := _count(fields, name))), 0)
    if not experts:
        return 0, 0, 0, 0
    dense = _count(fields, "intermediate_size") or default
    expert_width = _count(fields, "moe_intermediate_size") or dense
    shared = _count(fields, "n_shared_experts") * expert_width
    shared = shared or _count(fields, "shared_expert_intermediate_size")
    passed = min(experts, _count(fields, "num_experts_per_tok") or _USUAL_ACTIVE)
    return experts, expert_width, passed, shared


def _refuse_uncovered(fields: Fields) -> None:
    uncovered = sorted(str(key) for key, value in fields.items() if value and str(key).startswith(_UNCOVERED))
    kinds: object = fields.get("layer_types")
    if isinstance(kinds, list) and any(kind not in (_SLIDING, _FULL) for kind in kinds):
        uncovered.append("layer_types")
    if uncovered:
        raise Refusal(
            f"config.json: {uncovered[0]:.80}: not covered (expected layers with full, sliding-window or "
            "latent attention, for example those of Llama, Qwen3, DeepSeek V3 or gpt-oss); measure this "
            "model with Dynamo's profiler"
        )


def _count(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < _MAX_COUNT else 0


def _parameters(model: str, billions: float | None) -> tuple[float, float]:
    """All parameters and the active ones, from the configuration and the name; 0 is unknown."""
    name = model.lower().rpartition("/")[2]
    active = _ACTIVE.search(name)
    size = _SIZE.search(_ACTIVE.sub("", name))
    passed = float(active[1]) * 1e9 if active else 0.0
    if billions is not None:
        return billions * 1e9, passed
    if size is None:
        return 0.0, passed
    experts, number, unit = size.groups()
    parameters = float(number) * (1e9 if unit == "b" else 1e6)
    if experts is None:
        return parameters, passed
    return int(experts) * parameters, passed or min(_ACTIVE_OF_MIXTURE, int(experts)) * parameters


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


@dataclass(frozen=True, slots=True)
class Gpu:
    """One type of GPU.

    Units: floating point operations per second of dense bfloat16, bytes, bytes per second; of the link to the
    other GPUs of a node, both directions together. `has_fp8` is whether it computes FP8 twice as fast.
    """

    name: str
    flops: float
    memory_bytes: float
    bytes_per_second: float
    link_bytes_per_second: float
    has_fp8: bool = True


def _gpu(name: str, teraflops: float, gigabytes: float, memory: float, link: float) -> Gpu:
    """`memory` and `link` are gigabytes per second. Before Hopper and Ada no GPU has FP8."""
    has_fp8 = not name.startswith("a10")
    return Gpu(name, teraflops * 1e12, gigabytes * 1e9, memory * 1e9, link * 1e9, has_fp8)


GPUS = {
    gpu.name: gpu
    for gpu in (
        _gpu("gb200_sxm", 2500, 186, 8000, 1800),
        _gpu("b200_sxm", 2250, 180, 7700, 1800),
        _gpu("h200_sxm", 989, 141, 4800, 900),
        _gpu("h100_sxm", 989, 80, 3350, 900),
        _gpu("h100_pcie", 756, 80, 2000, 128),
        _gpu("a100_sxm", 312, 80, 2039, 600),
        _gpu("a100_pcie", 312, 80, 1935, 64),
        _gpu("l40s", 362, 48, 864, 64),
        _gpu("l4", 121, 24, 300, 64),
        _gpu("a10", 125, 24, 600, 64),
    )
}
"""Peak figures without sparsity. The link of a PCIe card is its slot.

Source: NVIDIA's data sheets of GB200 NVL72 (per GPU), HGX B200 (per GPU), H200, H100, A100 80GB,
L40S, L4, A10.
"""

DEFAULT = "h100_sxm"
_SXM_BY_DEFAULT = frozenset({"gb200", "b200", "h200", "h100", "a100"})
_WORD = re.compile(r"[a-z0-9]+")
_PCIE = "pcie"
_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_GPU = "nvidia.com/gpu"
"""Node labels of NVIDIA's GPU feature discovery, and the resource that pods request."""


# A name is a system of AI Configurator (`h100_sxm`), a node's label (`NVIDIA-H100-80GB-HBM3`) or
# what people write (`H100 SXM`). Labels omit the usual form factor.
def gpu_named(name: str, memory_mebibytes: float = 0) -> Gpu:
    """The type of GPU with this name, with a node's `memory_mebibytes` per GPU unless 0.

    Raises:
        Refusal: the table has no such type.
    """
    words = _WORD.findall(name.lower())
    family = next((word for word in words if word in _FAMILIES), "")
    if not family:
        raise Refusal(f"unknown GPU {json.dumps(name)} (expected one of {', '.join(GPUS)})")
    form = "_sxm" if family in _SXM_BY_DEFAULT else ""
    if _PCIE in words and f"{family}_{_PCIE}" in GPUS:
        form = f"_{_PCIE}"
    gpu = GPUS[family + form]
    return replace(gpu, memory_bytes=memory_mebibytes * 2**20) if memory_mebibytes else gpu


_FAMILIES = frozenset(name.partition("_")[0] for name in GPUS)


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The labels and allocatable resources of one node."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, str]

    @property
    def count(self) -> int:
        """The number of GPUs: by the label, else by the allocatable resource."""
        return _number(self.labels.get(_COUNT)) or _number(self.allocatable.get(_GPU))

    @property
    def memory(self) -> int:
        """Memory of one GPU in MiB; 0 if the node has no label for it."""
        return _number(self.labels.get(_MEMORY))


def best_nodes(nodes: Iterable[NodeGpus]) -> tuple[Gpu, int]:
    """The type of GPU of the best node, and how many it has: most GPUs first, then most memory.

    Raises:
        Refusal: no node has labels for its GPUs, or their type is unknown.
    """
    labelled = [node for node in nodes if node.count and node.labels.get(_PRODUCT)]
    if not labelled:
        raise Refusal(
            f"no node has GPUs and the label {_PRODUCT}: install NVIDIA's GPU feature discovery, "
            "or name the GPU in the request"
        )
    best = max(labelled, key=lambda node: (node.count, node.memory, node.labels[_PRODUCT]))
    return gpu_named(best.labels[_PRODUCT], best.memory), best.count


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0


Precision: TypeAlias = Literal["bf16", "fp8", "fp4"]
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp8", "fp4")
_QUANTIZED: Mapping[str, Fields] = {
    "fp8": {"quant_method": "fp8", "bits": 8},
    "fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "bits": 4},
}
_FILE = Path(__file__).with_name("models.json")


# The size of the weights follows from the shape and the precision of a variant.
@dataclass(frozen=True, slots=True)
class Model:
    """One published model, or one of its quantised variants.

    `config` has the fields of its `config.json` that determine time and memory. `variants` maps precisions of
    the weights to the names of the same model, itself included.
    """

    name: str
    source: str
    config: Fields
    precision: Precision
    variants: Mapping[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return shape_of(self.name, self.config, None)


@cache
def models() -> Mapping[str, Model]:
    """All models and variants by their names on Hugging Face."""
    catalog: dict[str, Model] = {}
    for name, entry in json.loads(_FILE.read_text(encoding="utf-8")).items():
        config, source = entry["config"], entry["source"]
        own = _precision(config)
        variants: dict[str, str] = {own: name, **entry.get("variants", {})}
        catalog[name] = Model(name, source, config, own, variants)
        for precision in PRECISIONS:
            variant = variants.get(precision)
            if variant and variant != name:
                quantized = {**config, "quantization_config": _QUANTIZED[precision]}
                catalog[variant] = Model(variant, source, quantized, precision, variants)
    return catalog


def model_named(name: str) -> Model | None:
    """The model with this name in any case, or None if it is not in the catalogue."""
    catalog = models()
    if name in catalog:
        return catalog[name]
    folded = name.lower()
    return next((model for key, model in catalog.items() if key.lower() == folded), None)


def variant_of(model: Model, precision: str) -> Model:
    """The same model with weights of that precision.

    Raises:
        Refusal: no such variant is published.
    """
    if precision not in model.variants:
        raise Refusal(
            f"{model.name} is not published in {precision} (expected one of "
            f"{', '.join(sorted(model.variants))})"
        )
    return models()[model.variants[precision]]


def _precision(config: Fields) -> Precision:
    quantized: object = config.get("quantization_config")
    method = str(quantized.get("quant_method")) if isinstance(quantized, Mapping) else ""
    if not method:
        return "bf16"
    return "fp8" if "fp8" in method else "fp4"
