"""A request has nothing made in namespaces of others unless its author was asked about."""

import pytest

from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.request import (
    DeploymentOverrides,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    ProfilingConfig,
)
from dynamo_operator.controllers.request_acts import Hindered, RequestActs
from dynamo_operator.controllers.request_facts import RequestFacts
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.informer import Informer
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.shared import SharedApplier
from dynamo_operator.kube.types.meta import Metadata
from dynamo_operator.kube.writer import Writer
from dynamo_operator.settings import RenderSettings
from simulated.server import Server


def a_request(namespace: str | None) -> DynamoGraphDeploymentRequest:
    spec = DynamoGraphDeploymentRequestSpec(
        model="m",
        backend="vllm",
        auto_apply=True,
        profiling_config=ProfilingConfig("p:1"),
        deployment_overrides=DeploymentOverrides(namespace=namespace),
    )
    return DynamoGraphDeploymentRequest(Metadata(name="r", namespace="lab", uid="u"), spec)


def some_facts(*, leads_elsewhere: bool) -> RequestFacts:
    cache = Cache([Informer(DynamoGraphDeployment).store])
    return RequestFacts(Client(Server()), cache, RenderSettings(), leads_elsewhere)


async def test_without_webhooks_another_namespace_is_refused_with_what_to_do() -> None:
    facts = some_facts(leads_elsewhere=False)
    (problem,) = await facts.problems(a_request("team-b"))
    assert problem.startswith(
        "spec.deploymentOverrides.namespace: nobody was asked whether you may"
    )
    assert "--graphs-elsewhere" in problem


@pytest.mark.parametrize(
    ("namespace", "leads_elsewhere"), [("team-b", True), ("lab", False), (None, False)]
)
async def test_a_namespace_that_was_asked_about_and_his_own_are_fine(
    namespace: str | None, leads_elsewhere: bool
) -> None:
    facts = some_facts(leads_elsewhere=leads_elsewhere)
    assert () == await facts.problems(a_request(namespace))


async def test_a_status_that_somebody_forged_leads_nowhere() -> None:
    facts = some_facts(leads_elsewhere=True)
    writer = Writer(facts.client, facts.cache)
    acts = RequestActs(
        writer, facts, SharedApplier(writer, facts.cache, ("a", "b")), RenderSettings()
    )
    request = a_request(None)
    assert request.spec is not None
    with pytest.raises(Hindered, match="nobody was asked"):
        await acts.create(request, request.spec, Key("team-b", "r"))
    (problem,) = await acts.config_maps(request, "team-b", None)
    assert "nobody was asked" in problem
