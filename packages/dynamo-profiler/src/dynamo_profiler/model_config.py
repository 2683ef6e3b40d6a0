"""What a model's `config.json` says of its size: layers, heads, experts, embeddings.

The fields are those of transformers' `PretrainedConfig`. Kinds of layers that take another time or memory
than attention over all or the last tokens are refused by their key, as an estimate that passes over them is
wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_profiler.refusal import Refusal
from kube_runtime.kind import Fields

_MOST_COUNT = 10**8
_USUAL_ACTIVE = 2
"""Experts that see each token where the file does not say. Source: Mixtral."""
_USUAL_LATENT_HEAD = 128
"""Size of a head of latent attention where the file does not say. Source: DeepSeek V3."""
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
"""Beginnings of the keys of layers with a state, of sparse and chunked attention, and of unequal layers."""
_SLIDING, _FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True, slots=True)
class Described:
    """What a `config.json` says. The counts of parameters have no biases and norms, which are small."""

    layers: int
    heads: int
    width: int
    cache_width: int
    longest_context: int
    parameters: float
    active: float
    words: float
    routed: float
    windowed: int


def described_by(config: Fields) -> Described | None:
    """What the file says. None means: it has not the fields of a transformer.

    Raises:
        Refusal: it has a key that changes time or memory in a way that the formulas do not cover.
    """
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
    experts, each, passed, shared = _experts(fields, 4 * hidden)
    dense = 3 * hidden * (_count(fields, "intermediate_size") or 4 * hidden)
    routed = mixed * experts * 3 * hidden * each
    outside = layers * attention + mixed * 3 * hidden * shared + words
    outside += (layers - mixed if experts else layers) * dense
    return Described(
        layers=layers,
        heads=heads,
        width=width,
        cache_width=cache,
        longest_context=_count(fields, "max_position_embeddings"),
        parameters=float(outside + routed),
        active=float(outside + mixed * passed * 3 * hidden * each),
        words=float(words),
        routed=float(routed),
        windowed=_windowed(fields, layers),
    )


def _attention(fields: Fields, hidden: int, heads: int) -> tuple[int, int, int]:
    """Parameters of one layer's attention, its width, and half of the numbers that it keeps for a token."""
    latent = _count(fields, "kv_lora_rank")
    if not latent:
        head = _count(fields, "head_dim") or max(1, hidden // heads)
        cache = (_count(fields, "num_key_value_heads") or heads) * head
        return 2 * hidden * (heads * head + cache), heads * head, cache
    # Latent attention keeps one compressed vector for key and value together.
    rope = _count(fields, "qk_rope_head_dim")
    plain = _count(fields, "qk_nope_head_dim") or _USUAL_LATENT_HEAD
    value = _count(fields, "v_head_dim") or _USUAL_LATENT_HEAD
    rank = _count(fields, "q_lora_rank")
    queries = (hidden + heads * (plain + rope)) * rank if rank else hidden * heads * (plain + rope)
    keys = hidden * (latent + rope) + latent * heads * (plain + value)
    found = queries + keys + heads * value * hidden
    return found, heads * (plain + rope + value) // 2, (latent + rope + 1) // 2


def _experts(fields: Fields, default: int) -> tuple[int, int, int, int]:
    """The experts of a layer, the width of one, how many a token passes, and the width that all pass."""
    names = ("n_routed_experts", "num_experts", "num_local_experts")
    experts = next((found for name in names if (found := _count(fields, name))), 0)
    if not experts:
        return 0, 0, 0, 0
    dense = _count(fields, "intermediate_size") or default
    each = _count(fields, "moe_intermediate_size") or dense
    shared = _count(fields, "n_shared_experts") * each
    shared = shared or _count(fields, "shared_expert_intermediate_size")
    passed = min(experts, _count(fields, "num_experts_per_tok") or _USUAL_ACTIVE)
    return experts, each, passed, shared


def _windowed(fields: Fields, layers: int) -> int:
    """How many layers keep only the last tokens."""
    kinds: object = fields.get("layer_types")
    if not isinstance(kinds, list) or not _count(fields, "sliding_window"):
        return 0
    return min(kinds.count(_SLIDING), layers - 1)


def _refuse_uncovered(fields: Fields) -> None:
    found = sorted(
        str(key) for key, value in fields.items() if value and str(key).startswith(_UNCOVERED)
    )
    kinds: object = fields.get("layer_types")
    if isinstance(kinds, list) and any(each not in (_SLIDING, _FULL) for each in kinds):
        found.append("layer_types")
    if found:
        raise Refusal(
            f"config.json: {found[0]:.80}: not covered (expected layers with full, sliding-window or latent "
            "attention, for example those of Llama, Qwen3, DeepSeek V3 or gpt-oss); measure this model with "
            "Dynamo's profiler"
        )


def _count(fields: Fields, name: str) -> int:
    found = fields.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        return 0
    return found if 0 < found < _MOST_COUNT else 0
