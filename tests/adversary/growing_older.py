"""The work on a document of the older generation, from end to end: the rules, all objects, the status."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimRequest, DynamoNimSpec
from dynamo_legacy.build.job import Build, build_job
from dynamo_legacy.build.plan import BuildFacts, Reason, dynamo_nim, plan_build, refused
from dynamo_legacy.build.source import built_image, fetch_of
from dynamo_legacy.render import claims, components, nim_objects, services_only
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status import (
    DeploymentReason,
    State,
    deployment_status,
    nim_status,
    refusal,
    unresolved_status,
)
from dynamo_legacy.validation import (
    deployment_problems,
    nim_problems,
    request_problems,
    shared_size_problem,
)
from dynamo_operator.component.pods import NO_DEPLOYMENT, diagnose
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

_SETTINGS = RenderSettings(virtual_service_gateway="istio-system/gateway", largest_object_bytes=0)
_LEGACY = LegacySettings(
    registry_server="registry.example.com", fetch_image="fetch:1", buildkit_url="tcp://b:1234"
)
_IMAGE = DynamoNimSpec(tag="frontend:1", image="registry.example.com/frontend:1")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_METADATA = {"name": "disagg", "namespace": "prod"}


def _older(kind: str, **spec: object) -> Object:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": kind,
        "metadata": _METADATA,
        "spec": spec,
    }


OLDER: dict[str, Object] = {
    "DynamoDeployment": _older(
        "DynamoDeployment",
        dynamoNim="frontend:1",
        services={"Worker": {"ingress": {"enabled": True}}},
    ),
    "DynamoNimDeployment": _older(
        "DynamoNimDeployment",
        dynamoNim="frontend--1",
        dynamoTag="graphs.disagg:Worker",
        serviceName="Worker",
        dynamoNamespace="dynamo",
        ingress={"enabled": True},
    ),
    "DynamoNimRequest": _older(
        "DynamoNimRequest", bentoTag="frontend:1", downloadUrl="https://example.com/a.tar"
    ),
}
"""A document of each kind that is reconciled."""


def _deployment(document: Object) -> Callable[[], object]:
    made = msgspec.convert(document, DynamoDeployment)

    def reconcile() -> None:
        if problems := deployment_problems(made, _SETTINGS, _LEGACY):
            text = "; ".join(map(str, problems))
            unresolved_status(made, State.FAILED, DeploymentReason.NOT_GENERATED, text)
            return
        graph = services_only(made, "graphs.disagg:Worker")
        shared_size_problem(made, graph, _SETTINGS)
        found = [msgspec.convert(each, DynamoNimDeployment) for each in components(made, graph)]
        msgspec.json.encode(deployment_status(made, found, (), (), ()))

    return reconcile


def _nim(document: Object) -> Callable[[], object]:
    nim = msgspec.convert(document, DynamoNimDeployment)

    def reconcile() -> None:
        if problems := nim_problems(nim, _SETTINGS, _LEGACY):
            refusal(nim, problems)
            return
        facts = Facts(istio_served=True)
        around, workloads = nim_objects(nim, _IMAGE, facts, _SETTINGS, _LEGACY)
        msgspec.json.encode([*claims(nim), *around, *workloads])
        nim_status(nim, None, NO_DEPLOYMENT, (), diagnose([], nodes=1, now=_NOW))

    return reconcile


def _request(document: Object) -> Callable[[], object]:
    request = msgspec.convert(document, DynamoNimRequest)

    def reconcile() -> None:
        if problems := request_problems(request, _SETTINGS):
            text = "; ".join(map(str, problems))
            refused(request, "", Reason.VALIDATION_FAILED, text)
            return
        image = built_image(request, _LEGACY)
        plan_build(request, BuildFacts(image.name))
        try:
            job = build_job(request, Build(image, fetch_of(request, _LEGACY), _LEGACY))
        except ValueError as error:
            refused(request, image.name, Reason.SOURCE_UNAVAILABLE, str(error))
            return
        msgspec.json.encode([job, dynamo_nim(request, image.name, image.secret)])

    return reconcile


RECONCILED = {
    "DynamoDeployment": _deployment,
    "DynamoNimDeployment": _nim,
    "DynamoNimRequest": _request,
}
