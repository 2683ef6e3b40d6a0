"""The built-in models: their published shapes in `models.json`, each with its source.

The size of the weights follows from the shape and the precision of a variant. The profiler and `dynamoctl
new` read the same file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Shape, shape_of
from kube_runtime.kind import Fields

Precision: TypeAlias = Literal["bf16", "fp8", "fp4"]
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp8", "fp4")
_QUANTIZED: Mapping[str, Fields] = {
    "fp8": {"quant_method": "fp8", "bits": 8},
    "fp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "bits": 4},
}
_FILE = Path(__file__).with_name("models.json")


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
