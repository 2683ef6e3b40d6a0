"""`dynamoctl models NAME` and `dynamoctl requests NAME`: one object, and the reason for its state."""

from datetime import UTC, datetime

from rich.console import RenderableType

from dynamo_graphs.api.model import DynamoModel, EndpointInfo
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.readiness import is_ready
from dynamoctl.ages import short_age
from dynamoctl.cluster.target import STATED, target_of, type_named
from dynamoctl.inspect.listing import RAW, print_raw
from dynamoctl.inspect.views import explained, print_explanation
from dynamoctl.options import Where
from dynamoctl.screen import Cell, show, table
from kube_runtime.commandline.errors import ExitCode, visible

_ENDPOINTS = ("POD", "STATE", "LOADED", "FAILURES", "LAST TRY", "MESSAGE")


async def print_detail(kind: str, name: str, where: Where, output: str) -> ExitCode:
    """Print a model or a request, and the reason for its state; 0 if it is ready or has succeeded.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, (type_named(kind, STATED),)) as at:
        if output in RAW:
            body = await at.raw()
            print_raw(at.type_.KIND, [body], body, output)
            return ExitCode.OK
        stated = await at.get()
        parts: list[RenderableType] = []
        if isinstance(stated, DynamoModel):
            parts = model_parts(stated, datetime.now(UTC))
        elif isinstance(stated, DynamoGraphDeploymentRequest):
            parts = request_parts(stated)
        show(*parts, "")
        print_explanation(await explained(at.reading, stated))
    return ExitCode.OK if is_ready(stated) else ExitCode.PROBLEMS


def load_state(endpoint: EndpointInfo, *, is_lora: bool) -> str:
    """The state of a model on an endpoint, in one to three words."""
    if endpoint.ready:
        return "loaded"
    if not is_lora:
        return "serves it"  # a base model is not loaded by requests
    if endpoint.unable:
        return "no LoRA API"
    if endpoint.fallback_covered:
        return "covered by workers"
    if endpoint.reloading:
        return "reloading"
    return "failed" if endpoint.failures else "pending"


def model_parts(model: DynamoModel, now: datetime) -> list[RenderableType]:
    """The parts of a screen: the model, and a row for each pod that may have loaded it."""
    spec, status = model.spec, model.status
    parts: list[RenderableType] = []
    if spec is not None:
        source = f" from {spec.source.uri}" if spec.source else ""
        parts.append(
            visible(f"{spec.model_name}: {spec.model_type} of {spec.base_model_name}{source}")
        )
    is_lora = spec is not None and spec.model_type == "lora"
    rows = [
        _endpoint(endpoint, load_state(endpoint, is_lora=is_lora), now)
        for endpoint in status.endpoints
    ]
    rows += [_endpoint(endpoint, "to be unloaded", now) for endpoint in status.former_endpoints]
    if rows:
        parts += ["", table(_ENDPOINTS, rows)]
    return parts


def request_parts(request: DynamoGraphDeploymentRequest) -> list[RenderableType]:
    """The parts of a screen: the state, the profiling Job and the graph of a request."""
    spec, status = request.spec, request.status
    job = status.profiling_job_name
    created = status.deployment
    lines = [
        ("Model", spec.model if spec else ""),
        ("Backend", status.backend or ""),
        ("State", status.state or "not reconciled yet"),
        ("Phase", status.profiling_phase or ""),
        ("Job", f"{job} (kubectl logs job/{job})" if job else ""),
        ("Graph", f"{created.name}: {created.state}" if created else ""),
        ("Message", status.message or ""),
    ]
    return [table((), [(title, text) for title, text in lines if text])]


def _endpoint(endpoint: EndpointInfo, state: str, now: datetime) -> tuple[Cell, ...]:
    return (
        endpoint.pod_name or endpoint.address,
        state,
        endpoint.loaded_name or "-",
        str(endpoint.failures),
        short_age(endpoint.last_attempt_time, now),
        endpoint.message,
    )
