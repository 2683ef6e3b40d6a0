"""`dynamoctl check`: reads a cluster and says what it lacks. It changes nothing."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamo_operator.api.crd import RESOURCES
from dynamo_operator.cli.errors import ExitCode
from dynamo_operator.installation import checks
from dynamo_operator.installation.checks import Finding, Verdict
from dynamo_operator.installation.inventory import Node, Pod, StorageClass, SubjectAccessReview
from dynamo_operator.installation.permissions import MARKER_LEASE, RULES
from dynamo_operator.installation.rule import Feature, Name, Rule, Where
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.connect import connect
from dynamo_operator.kube.errors import ConfigError, Unreachable
from dynamo_operator.kube.kind import Key, Object
from dynamo_operator.kube.types.apiextensions import CustomResourceDefinition
from dynamo_operator.kube.types.coordination import Lease
from dynamo_operator.kube.types.meta import R

_OPTIONAL = (
    ("grove.io", "dynamo-operator.optionalApis.grove"),
    ("scheduling.run.ai", "dynamo-operator.optionalApis.kai"),
    ("leaderworkerset.x-k8s.io", "dynamo-operator.optionalApis.leaderWorkerSet"),
    ("inference.networking.k8s.io", "dynamo-operator.optionalApis.inferencePool"),
    ("networking.istio.io", "dynamo-operator.dynamo.istio"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """What to look at. An empty `account` means: nobody's permissions."""

    kubeconfig: Path | None = None
    context: str = ""
    is_before: bool = False
    account: str = ""
    namespace: str = ""


def print_findings(options: Options, output: str) -> ExitCode:
    """Print what was found; the exit code that it means."""
    findings, code = asyncio.run(_findings(options))
    if output == "json":
        rows = [
            {"name": f.name, "verdict": f.verdict.value, "text": f.text, "remedy": f.remedy}
            for f in findings
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return code
    for each in findings:
        print(f"{each.verdict.value:<8} {each.name}: {each.text}")
        if each.remedy:
            print(f"{'':<8} → {each.remedy}")
    print(checks.summary(findings))
    return code


async def _findings(options: Options) -> tuple[list[Finding], ExitCode]:
    try:
        async with await connect(options.kubeconfig, options.context or None) as transport:
            found = [each async for each in _checked(Client(transport), options)]
    except Unreachable as error:
        return checks.unreachable(str(error)), ExitCode.UNREACHABLE
    has_failed = any(each.verdict is Verdict.FAIL for each in found)
    return found, ExitCode.PROBLEMS if has_failed else ExitCode.OK


async def _checked(client: Client, options: Options) -> AsyncIterator[Finding]:
    version = (await client.get_json("/version"))["gitVersion"]
    yield Finding(checks.CONNECTIVITY, Verdict.OK, "the API server answers")
    yield checks.default_storage(await _all(client, StorageClass))
    yield checks.gpus(await _all(client, Node))
    yield checks.gpu_operator(await _all(client, Pod, labels="app=gpu-operator"))
    yield checks.kubernetes_version(version)
    present = {each.metadata.name for each in await _all(client, CustomResourceDefinition)}
    kinds = [each.KIND for each in RESOURCES]
    yield checks.definitions(kinds, present, is_before=options.is_before)
    for finding in checks.optional_kinds(present, _OPTIONAL):
        yield finding
    leases = await _all(client, Lease, fields=f"metadata.name={MARKER_LEASE}")
    yield checks.own_operators({each.metadata.namespace for each in leases})
    if options.account:
        yield checks.permissions(await _missing(client, options), options.account)


async def _all(client: Client, type_: type[R], *, labels: str = "", fields: str = "") -> list[R]:
    return [
        each
        async for page in client.pages(type_, labels=labels, fields=fields)
        for each in page.items
    ]


async def _missing(client: Client, options: Options) -> list[str]:
    """What the account is not allowed, of the rules that each installation has."""
    namespace, slash, name = options.account.partition("/")
    if not slash:
        raise ConfigError("--account", f"expected NAMESPACE/NAME, got {options.account!r}")
    missing: list[str] = []
    for rule in _checkable(options.namespace):
        for question in _questions(rule, options.namespace):
            wanted: Object = {
                "apiVersion": SubjectAccessReview.KIND.api_version,
                "kind": SubjectAccessReview.KIND.name,
                "metadata": {"name": ""},
                "spec": {
                    "user": f"system:serviceaccount:{namespace}:{name}",
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                    "resourceAttributes": question,
                },
            }
            answer = await client.create(SubjectAccessReview, wanted)
            if not answer.status.allowed:
                missing.append(f"{question['verb']} {Key(question['group'], question['resource'])}")
    return missing


def _checkable(namespace: str) -> Sequence[Rule]:
    """The rules that are the same for all installations: those about objects that these name are not."""
    modes = {Feature.ALWAYS, Feature.RESTRICTED if namespace else Feature.CLUSTER_WIDE}
    return [
        rule
        for rule in RULES
        if rule.where is Where.GRAPHS
        and rule.feature in modes
        and not any(isinstance(name, Name) for name in rule.names)
    ]


def _questions(rule: Rule, namespace: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for each in rule.resources:
        resource, _, subresource = each.partition("/")
        for verb in rule.verbs:
            question = {"group": rule.group, "resource": resource, "verb": verb}
            question |= {"namespace": namespace, "subresource": subresource}
            question |= {"name": str(rule.names[0])} if rule.names else {}
            found.append({key: value for key, value in question.items() if value or key == "group"})
    return found
