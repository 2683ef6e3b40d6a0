"""What a check says of kinds, webhooks, operators and room, from what was read of a cluster."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from cyclopts import CycloptsError

from dynamoctl.inspect.check import print_findings
from dynamoctl.installation import checks
from dynamoctl.installation.checks import (
    CheckResult,
    DefinedVersion,
    Definition,
    DefinitionSpec,
    DefinitionStatus,
    Project,
    QuotaStatus,
    ResourceQuota,
    default_storage,
)
from dynamoctl.options import CheckOptions
from kube_runtime.client.client import Answer, Request
from kube_runtime.tls import new_authority
from kube_runtime.types.kinds import Lease, LeaseSpec, ValidatingWebhookConfiguration, Webhook, WebhookClient
from kube_runtime.types.meta import Kind, Metadata
from scripted.connections import connect_to

NOW = datetime(2026, 5, 1, tzinfo=UTC)
A = Kind("x.io", "v1", "A", "as")
B = Kind("x.io", "v1", "B", "bs")


def definition(kind: Kind, *served: str, stored: tuple[str, ...] = ()) -> dict[str, Definition]:
    versions = tuple(DefinedVersion(each, served=True) for each in served)
    return {
        str(kind): Definition(
            metadata=Metadata(name=str(kind)), spec=DefinitionSpec(versions), status=DefinitionStatus(stored)
        )
    }


def test_definitions_may_all_be_missing_before_an_installation_only() -> None:
    assert CheckResult.OK == checks.definitions([A, B], {}, is_before=True).verdict
    assert CheckResult.FAIL == checks.definitions([A, B], {}, is_before=False).verdict
    found = checks.definitions([A, B], definition(A, "v1"), is_before=True)
    assert (CheckResult.FAIL, "missing: bs.x.io") == (found.verdict, found.text)
    both = definition(A, "v1") | definition(B, "v1")
    assert CheckResult.OK == checks.definitions([A, B], both, is_before=False).verdict


def test_a_kind_must_be_served_in_our_version() -> None:
    found = checks.definitions([A], definition(A, "v2"), is_before=False)
    assert (CheckResult.FAIL, "not served in v1: as.x.io") == (found.verdict, found.text)


def test_objects_in_a_version_that_is_gone_are_told() -> None:
    present = definition(A, "v1", stored=("v1alpha1", "v1"))
    found = checks.definitions([A], present, is_before=False)
    assert CheckResult.WARNING == found.verdict
    assert "as.x.io in v1alpha1" in found.text


@pytest.mark.parametrize(
    ("present", "verdict", "words"),
    [
        (definition(A, "v1") | definition(B, "v1"), CheckResult.OK, "installed; set p.on"),
        (definition(A, "v1"), CheckResult.WARNING, "partly installed; missing: bs.x.io"),
        (definition(A, "v1") | definition(B, "v2"), CheckResult.WARNING, "bs.x.io is not served in v1"),
    ],
)
def test_another_project_is_there_whole_and_in_a_known_version(
    present: dict[str, Definition], verdict: CheckResult, words: str
) -> None:
    [found] = checks.other_projects(present, [Project("P", (A, B), "set p.on")])
    assert verdict == found.verdict
    assert words in found.text


def test_a_project_that_is_not_there_is_not_mentioned() -> None:
    assert [] == checks.other_projects({}, [Project("P", (A, B), "set p.on")])


@pytest.mark.parametrize(
    ("forbidden", "verdict", "words", "remedy"),
    [
        (None, CheckResult.OK, "installed; used unless p.on is false", ""),
        ({}, CheckResult.OK, "installed, and the operator may use it", ""),
        ({B: ["ns/operator"]}, CheckResult.WARNING, "ns/operator may not read bs.x.io", "p.on=true"),
    ],
)
def test_a_project_that_the_operator_may_not_read_is_named_with_the_value_that_grants_it(
    forbidden: dict[Kind, list[str]] | None, verdict: CheckResult, words: str, remedy: str
) -> None:
    present = definition(A, "v1") | definition(B, "v1")
    project = Project("P", (A, B), "used unless p.on is false", granted_by="p.on=true")
    [found] = checks.other_projects(present, [project], forbidden)
    assert verdict == found.verdict
    assert words in found.text
    assert remedy in found.remedy


def test_without_a_storage_class_no_command_is_advised_that_has_nothing_to_patch() -> None:
    assert "kubectl patch" not in default_storage([]).remedy


def configuration(bundle: str) -> ValidatingWebhookConfiguration:
    entry = Webhook("v.kb.io", WebhookClient(ca_bundle=bundle))
    return ValidatingWebhookConfiguration(metadata=Metadata(name="c"), webhooks=(entry,))


def bundle(days: int) -> str:
    began = NOW - timedelta(days=100)
    authority = new_authority("a", now=began, life=timedelta(days=100 + days))
    return base64.b64encode(authority.pem).decode()


@pytest.mark.parametrize(
    ("days", "verdict"), [(30, CheckResult.OK), (3, CheckResult.WARNING), (-1, CheckResult.FAIL)]
)
def test_an_authority_that_ends_is_told_in_time(days: int, verdict: CheckResult) -> None:
    assert verdict == checks.authorities([configuration(bundle(days))], NOW).verdict


@pytest.mark.parametrize("registered", [[], [ValidatingWebhookConfiguration()]])
def test_without_a_webhook_no_authority_is_missing(registered: list[ValidatingWebhookConfiguration]) -> None:
    found = checks.authorities(registered, NOW)
    assert (CheckResult.OK, "no Dynamo webhook is registered") == (found.verdict, found.text)


class WithoutKinds:
    """A cluster without our CRDs, and with nothing of what a check reads."""

    async def send(self, request: Request) -> Answer:
        code, body = 200, b'{"gitVersion": "v1.36.3", "metadata": {}, "items": []}'
        if "nvidia.com/" in request.path:
            code, body = 404, b'{"kind": "Status", "code": 404, "message": "no such kind"}'
        return Answer(code, {}, _once(body))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def test_a_namespace_is_checked_before_our_kinds_are_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect_to(WithoutKinds(), monkeypatch)
    options = CheckOptions(is_before=True, namespace="team-a")
    asyncio.run(print_findings(options, "text"))
    lines = capsys.readouterr().out.splitlines()
    assert "ok       Pull Secrets: no graph names an image" in lines


def test_a_namespace_that_would_be_another_path_is_not_asked_for() -> None:
    with pytest.raises(CycloptsError, match="invalid namespace"):
        asyncio.run(print_findings(CheckOptions(namespace="../../nodes"), "text"))


@pytest.mark.parametrize("name", ["operator", "prod/", "/operator", "a/b/c"])
def test_a_name_that_is_of_no_service_account_is_refused(name: str) -> None:
    expected = f'invalid ServiceAccount "{name}" \\(expected NAMESPACE/NAME'
    with pytest.raises(CycloptsError, match=expected):
        asyncio.run(print_findings(CheckOptions(account=name), "text"))


@pytest.mark.parametrize(
    ("text", "words"), [("", "c/v.kb.io has no caBundle"), ("bm8=", "caBundle that is not PEM")]
)
def test_a_webhook_without_an_authority_is_a_fault(text: str, words: str) -> None:
    found = checks.authorities([configuration(text)], NOW)
    assert CheckResult.FAIL == found.verdict
    assert words in found.text


@pytest.mark.parametrize(
    ("trial", "is_expected", "verdict"),
    [
        ("failed calling webhook: x509: unknown authority", False, CheckResult.FAIL),
        ("admission webhook v.kb.io denied the request: …", True, CheckResult.OK),
        ("", True, CheckResult.FAIL),
        ("", False, CheckResult.OK),
        ("graphs is forbidden", True, CheckResult.WARNING),
    ],
)
def test_what_came_of_the_trial_is_judged(trial: str, is_expected: bool, verdict: CheckResult) -> None:
    assert verdict == checks.admission(trial, is_expected=is_expected).verdict


def lease(seconds_ago: int) -> Lease:
    renewed = (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")
    spec = LeaseSpec("pod-1", lease_duration_seconds=15, renew_time=renewed)
    return Lease(metadata=Metadata(name="l", namespace="n"), spec=spec)


@pytest.mark.parametrize(
    ("found", "is_before", "verdict", "words"),
    [
        (None, True, CheckResult.OK, "no operator leads"),
        (lease(5), True, CheckResult.WARNING, "pod-1 leads, by Lease n/l"),
        (lease(5), False, CheckResult.OK, "pod-1 leads, by Lease n/l"),
        (lease(60), True, CheckResult.OK, "pod-1 did until its Lease expired"),
    ],
)
def test_a_second_operator_is_told_before_it_is_installed(
    found: Lease | None, is_before: bool, verdict: CheckResult, words: str
) -> None:
    judged = checks.leader(found, NOW, is_before=is_before)
    assert verdict == judged.verdict
    assert words in judged.text


def test_a_namespace_whose_operator_has_died_has_none_of_its_own() -> None:
    def marked(namespace: str, seconds_ago: int) -> Lease:
        found = lease(seconds_ago)
        return Lease(metadata=Metadata(name="l", namespace=namespace), spec=found.spec)

    found = checks.own_operators([marked("team-a", 600), marked("team-b", 5)], NOW)
    assert "team-b; until its Lease expired also team-a" == found.text
    assert "none; until its Lease expired also team-a" == (
        checks.own_operators([marked("team-a", 600)], NOW).text
    )
    assert "none" == checks.own_operators([], NOW).text


def quota(hard: str, used: str) -> ResourceQuota:
    status = QuotaStatus({"requests.nvidia.com/gpu": hard}, {"requests.nvidia.com/gpu": used})
    return ResourceQuota(metadata=Metadata(name="q"), status=status)


def test_what_is_left_of_a_quota_is_counted() -> None:
    found = checks.quota([quota("8", "3")])
    assert (CheckResult.OK, "q/requests.nvidia.com/gpu: 5 left") == (found.verdict, found.text)
    assert CheckResult.WARNING == checks.quota([quota("8", "8")]).verdict
    assert "no quota found" == checks.quota([]).text


def test_a_registry_without_a_pull_secret_is_named() -> None:
    images = ("reg.example.com:5000/a:1", "python:3.12")
    found = checks.pull_secrets(images, {"reg.example.com:5000"})
    assert (CheckResult.WARNING, "missing for docker.io (as in python:3.12)") == (found.verdict, found.text)
    assert CheckResult.OK == checks.pull_secrets(images[:1], {"reg.example.com:5000"}).verdict
