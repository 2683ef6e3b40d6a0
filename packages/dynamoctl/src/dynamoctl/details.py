"""`dynamoctl models NAME` and `dynamoctl requests NAME`: one object, and why it is as it is."""

import asyncio
import sys
from datetime import UTC, datetime

from rich.console import RenderableType

from dynamo_graphs.api.model import DynamoModel, EndpointInfo
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.readiness import is_ready
from dynamoctl.ages import short_age
from dynamoctl.cluster_options import Where
from dynamoctl.inspection import print_explanation
from dynamoctl.resource_args import S
from dynamoctl.screen import Cell, show, show_json, table
from dynamoctl.target import place
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.kind import Object

_ENDPOINTS = ("POD", "STATE", "LOADED", "FAILURES", "LAST TRY", "MESSAGE")


def print_model(name: str, where: Where, output: str) -> ExitCode:
    """Print the endpoints of a model with what each has loaded; 0 if the model is ready.

    Raises: CycloptsError; OperatorError.
    """
    return asyncio.run(_print(name, where, output, DynamoModel))


def print_request(name: str, where: Where, output: str) -> ExitCode:
    """Print the phase of a request and what came of it; 0 if it has succeeded.

    Raises: CycloptsError; OperatorError.
    """
    return asyncio.run(_print(name, where, output, DynamoGraphDeploymentRequest))


def load_state(endpoint: EndpointInfo, *, is_lora: bool) -> str:
    """What an endpoint does with the model, in one word or two."""
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
    """The parts of a screen: what the model is, and a row for each pod that may have it."""
    spec, status = model.spec, model.status
    parts: list[RenderableType] = []
    if spec is not None:
        source = f" from {spec.source.uri}" if spec.source else ""
        parts.append(
            visible(f"{spec.model_name}: {spec.model_type} of {spec.base_model_name}{source}")
        )
    is_lora = spec is not None and spec.model_type == "lora"
    rows = [_endpoint(each, load_state(each, is_lora=is_lora), now) for each in status.endpoints]
    rows += [_endpoint(each, "to be unloaded", now) for each in status.former_endpoints]
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


async def _print(name: str, where: Where, output: str, type_: type[S]) -> ExitCode:
    async with place(name, where, (type_,)) as at:
        if output in ("json", "yaml", "name"):
            await at.found()  # with the hints if it is not there
            raw = await at.reading.raw(type_.KIND, at.key)
            _print_raw(raw or {}, output, str(type_.KIND))
            return ExitCode.OK
        stated = await at.found()
        if isinstance(stated, DynamoModel):
            parts = model_parts(stated, datetime.now(UTC))
        elif isinstance(stated, DynamoGraphDeploymentRequest):
            parts = request_parts(stated)
        else:
            parts = []
        show(*parts, "")
        await print_explanation(at.reading, stated)
    return ExitCode.OK if is_ready(stated) else ExitCode.PROBLEMS


def _endpoint(endpoint: EndpointInfo, state: str, now: datetime) -> tuple[Cell, ...]:
    return (
        endpoint.pod_name or endpoint.address,
        state,
        endpoint.loaded_name or "-",
        str(endpoint.failures),
        short_age(endpoint.last_attempt_time, now),
        endpoint.message,
    )


def _print_raw(raw: Object, output: str, kind: str) -> None:
    raw["metadata"].pop("managedFields", None)
    if output == "json":
        show_json(raw)
    elif output == "name":
        print(f"{kind}/{raw['metadata']['name']}")
    else:
        from dynamo_graphs.files.yaml_writer import write_yaml

        write_yaml([raw], sys.stdout)
