"""The rules of a DynamoModel."""

from collections.abc import Iterator

from dynamo_operator.models.api import DynamoModel, DynamoModelSpec
from dynamo_operator.shared.problems import Problem, ProblemKind, has_credentials, without_credentials

SCHEMES = ("s3://", "hf://", "file://")
"""The schemes of sources from which the runtime can load a LoRA."""

_EMPTY_SPEC = DynamoModelSpec(model_name="", base_model_name="")


def model_problems(model: DynamoModel) -> tuple[Problem, ...]:
    """All problems of a model, sorted by path."""
    return tuple(sorted(_problems(model.spec or _EMPTY_SPEC)))


def _problems(spec: DynamoModelSpec) -> Iterator[Problem]:
    for field, value in (("modelName", spec.model_name), ("baseModelName", spec.base_model_name)):
        if not value:
            path = f"spec.{field}"
            yield Problem(path, f"{path} is required", ProblemKind.REQUIRED)
    if spec.model_type != "lora":
        return
    uri = "spec.source.uri"
    if spec.source is None:
        message = "spec.source is required when modelType is 'lora'"
        yield Problem("spec.source", message, ProblemKind.REQUIRED)
    elif not spec.source.uri:
        message = f"{uri} must be specified when modelType is 'lora'"
        yield Problem(uri, message, ProblemKind.REQUIRED)
    elif not spec.source.uri.startswith(SCHEMES):
        # The text becomes an Event, which more users can read than the model.
        got = without_credentials(spec.source.uri)
        message = f"source URI must start with 's3://', 'hf://' or 'file://', got: {got}"
        yield Problem(uri, message, ProblemKind.NOT_SUPPORTED)


def model_warnings(model: DynamoModel) -> Iterator[Problem]:
    """Warn of a source without effect, and of one that is only a scheme or contains credentials."""
    spec = model.spec or _EMPTY_SPEC
    if spec.source is None:
        return
    if spec.model_type != "lora":
        yield Problem("spec.source", f'has no effect with modelType "{spec.model_type}"')
        return
    if spec.source.uri in SCHEMES:
        yield Problem("spec.source.uri", f"missing name or path after {spec.source.uri}")
    if has_credentials(spec.source.uri):
        text = "every reader of the model can see credentials in it; pass them to the pods"
        yield Problem("spec.source.uri", f"{text} in a Secret")


def model_update_problems(old: DynamoModel, new: DynamoModel) -> Iterator[Problem]:
    """Refuse changes of immutable fields."""
    for field, _ in _immutable_changes(old, new):
        message = f"{field} is immutable and cannot be changed after creation"
        yield Problem(field, message, ProblemKind.FORBIDDEN)


def model_update_warnings(old: DynamoModel, new: DynamoModel) -> Iterator[Problem]:
    """Warn what a refused change would break."""
    for field, effect in _immutable_changes(old, new):
        yield Problem(field, f"Changing {field} {effect}")


def _immutable_changes(old: DynamoModel, new: DynamoModel) -> Iterator[tuple[str, str]]:
    before, after = old.spec or _EMPTY_SPEC, new.spec or _EMPTY_SPEC
    if before.model_type != after.model_type:
        yield "spec.modelType", "may cause unexpected behavior"
    if before.base_model_name != after.base_model_name:
        yield "spec.baseModelName", "will break endpoint discovery"
