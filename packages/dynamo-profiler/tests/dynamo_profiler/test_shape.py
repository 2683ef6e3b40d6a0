"""How large a model is, by its name and by its `config.json`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler import Refusal
from dynamo_profiler.shape import gpu_named, model_named, models, shape_of, variant_of


@pytest.mark.parametrize(
    ("model", "billions", "active"),
    [
        ("Qwen/Qwen3-0.6B", 0.6, 0.6),
        ("Qwen/Qwen3-30B-A3B", 30, 3),
        ("mistralai/Mixtral-8x7B-v0.1", 56, 14),
        ("facebook/opt-125m", 0.125, 0.125),
        ("acme/llama2-70b_chat", 70, 70),
    ],
)
def test_the_name_says_how_many_parameters(model: str, billions: float, active: float) -> None:
    shape = shape_of(model, None, None)
    assert billions == pytest.approx(shape.parameters / 1e9)
    assert active == pytest.approx(shape.active / 1e9)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("a/Llama-3.1-8B", 2),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", 1),
        ("a/Llama-3.1-8B-AWQ", 0.5),
        ("nvidia/Llama-3.3-70B-Instruct-NVFP4", 0.5),
    ],
)
def test_the_name_says_how_parameters_are_stored(model: str, size: float) -> None:
    assert size == shape_of(model, None, None).bytes_per_parameter


def test_latent_attention_keeps_one_small_vector_for_each_token() -> None:
    """576 numbers of two bytes in each of 61 layers."""
    shape = models()["deepseek-ai/DeepSeek-V3"].shape
    assert 61 * 576 * 2 == shape.cache_bytes_per_token
    assert 1 == shape.bytes_per_parameter


def test_what_the_user_says_of_the_size_counts_most() -> None:
    assert 5e9 == shape_of("a/8B", models()["Qwen/Qwen3-8B"].config, 5).parameters


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.integers() | st.text()))
def test_any_name_has_a_sound_shape_or_is_refused(model: str, config: dict[str, Any]) -> None:
    try:
        shape = shape_of(model, config, None)
    except Refusal:
        return
    assert 0 < shape.active <= shape.parameters
    assert 0 < shape.cache_bytes_per_token
    assert 1 <= shape.layers


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100_sxm"),
        ("NVIDIA-H100-PCIe", "h100_pcie"),
        ("h200_sxm", "h200_sxm"),
        ("NVIDIA-A100-SXM4-80GB", "a100_sxm"),
        ("NVIDIA-L4", "l4"),
        ("NVIDIA-GB200", "gb200_sxm"),
    ],
)
def test_a_gpu_is_known_by_any_of_its_names(label: str, name: str) -> None:
    assert name == gpu_named(label).name


def test_a_node_knows_its_memory_better_than_the_table() -> None:
    assert 40960 * 2**20 == gpu_named("NVIDIA-A100-SXM4-40GB", 40960).memory_bytes


PUBLISHED = {
    "meta-llama/Llama-3.1-8B-Instruct": (8.03, 8.03),
    "meta-llama/Llama-3.3-70B-Instruct": (70.6, 70.6),
    "meta-llama/Llama-3.1-405B-Instruct": (406, 406),
    "Qwen/Qwen3-0.6B": (0.6, 0.6),
    "Qwen/Qwen3-1.7B": (1.7, 1.7),
    "Qwen/Qwen3-8B": (8.2, 8.2),
    "Qwen/Qwen3-32B": (32.8, 32.8),
    "Qwen/Qwen3-30B-A3B": (30.5, 3.3),
    "Qwen/Qwen3-235B-A22B": (235, 22),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": (480, 35),
    "deepseek-ai/DeepSeek-V3": (671, 37),
    "openai/gpt-oss-120b": (117, 5.1),
    "openai/gpt-oss-20b": (21, 3.6),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": (46.7, 12.9),
    "mistralai/Mixtral-8x22B-Instruct-v0.1": (141, 39),
    "moonshotai/Kimi-K2-Instruct": (1000, 32),
    "MiniMaxAI/MiniMax-M2.5": (230, 10),
}
"""Billions of parameters, and of those that a token passes, as the models' cards have them."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_shape_has_the_published_number_of_parameters(name: str) -> None:
    every, active = PUBLISHED[name]
    shape = models()[name].shape
    assert every == pytest.approx(shape.parameters / 1e9, rel=0.03)
    # Cards leave out the embeddings, which are a sixth of what a token passes in the smallest mixture.
    assert active == pytest.approx(shape.active / 1e9, rel=0.17)


def test_there_are_at_least_twenty_models_each_with_its_source() -> None:
    own = [model for name, model in models().items() if model.variants[model.precision] == name]
    assert 20 <= len(own)
    assert all(model.source.startswith("config.json of ") for model in own)


def test_a_quantised_variant_takes_what_its_parameters_take() -> None:
    plain, quantised = (model_named(f"Qwen/Qwen3-32B{end}") for end in ("", "-FP8"))
    assert plain is not None
    assert quantised is not None
    assert quantised.shape.parameters == plain.shape.parameters
    words = 2 * plain.shape.words
    assert plain.shape.weight_bytes - words == 2 * (quantised.shape.weight_bytes - words)
    assert variant_of(plain, "fp8") == quantised


def test_a_variant_that_is_not_published_is_refused() -> None:
    model = model_named("qwen/qwen3-32b")
    assert model is not None
    with pytest.raises(Refusal, match=r"Qwen/Qwen3-32B is not published in fp4 \(expected one of b"):
        variant_of(model, "fp4")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mamba_num_heads", 128),
        ("linear_num_key_heads", 16),
        ("index_topk", 2048),
        ("layer_types", ["full_attention", "linear_attention"]),
    ],
)
def test_layers_that_the_formulas_do_not_cover_are_refused_by_their_key(key: str, value: Any) -> None:
    config = {**models()["Qwen/Qwen3-8B"].config, key: value}
    with pytest.raises(Refusal, match=rf"^config\.json: {key}: not covered \(expected layers with "):
        shape_of("acme/new", config, None)


def test_layers_with_a_window_keep_nothing_for_long() -> None:
    """Every second layer of gpt-oss keeps 128 tokens."""
    shape = models()["openai/gpt-oss-120b"].shape
    assert 18 == shape.windowed
    assert 2 * 18 * 512 * 2 == shape.cache_bytes_per_token
