"""`dynamoctl check`: reads a cluster and says what it lacks. It changes nothing."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Collection
from datetime import UTC, datetime

from rich.text import Text

from dynamo_graphs.api.crd import RESOURCES
from dynamo_graphs.api.optional_apis import OPTIONAL_APIS
from dynamo_graphs.product import user_agent
from dynamoctl.check_options import Options
from dynamoctl.installation import checks, kinds, leaders, reviews, upgrade, webhooks
from dynamoctl.installation import quota as room
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.dry_run import images_of_graphs, registries, tried_mistake
from dynamoctl.installation.inventory import Definition, Pod, ResourceQuota, StorageClass
from dynamoctl.installation.permissions import MARKER_LEASE
from dynamoctl.installation.projects import PROJECTS
from dynamoctl.running import operators, rendering_settings
from dynamoctl.screen import show
from kube_runtime.client.connect import connect
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.errors import ConfigError, Forbidden, Unreachable
from kube_runtime.kind import Key, Kind
from kube_runtime.types.admission import ValidatingWebhookConfiguration
from kube_runtime.types.coordination import Lease
from kube_runtime.types.core import Node

_STYLES = {CheckResult.OK: "green", CheckResult.WARNING: "yellow", CheckResult.FAIL: "red"}
_ELECTION = Key("kube-system", "dynamo.nvidia.com")
_OURS = "app.kubernetes.io/created-by=dynamo-operator"


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
    print(checks.headline(findings))
    for each in findings:
        style = _STYLES[each.verdict]
        show(
            Text.assemble(
                (f"{each.verdict.value:<8} ", style), visible(f"{each.name}: {each.text}")
            )
        )
        if each.remedy:
            show(visible(f"{'':<8} → {each.remedy}"))
    print(checks.summary(findings))
    return code


async def _findings(options: Options) -> tuple[list[Finding], ExitCode]:
    try:
        async with await connect(
            options.kubeconfig, options.context or None, user_agent=user_agent()
        ) as transport:
            found = [each async for each in _checked(Reading(transport), options)]
    except Unreachable as error:
        return checks.unreachable(str(error)), ExitCode.UNREACHABLE
    has_failed = any(each.verdict is CheckResult.FAIL for each in found)
    return found, ExitCode.PROBLEMS if has_failed else ExitCode.OK


async def _checked(reading: Reading, options: Options) -> AsyncIterator[Finding]:
    version = (await reading.client.get_json("/version"))["gitVersion"]
    yield Finding(checks.CONNECTIVITY, CheckResult.OK, "the API server answers")
    if not options.is_self:
        async for finding in _equipment(reading):
            yield finding
    yield checks.kubernetes_version(version)
    async for finding in _definitions(reading, options):
        yield finding
    if not options.is_self:
        async for finding in _operators(reading, options):
            yield finding
    if options.account or options.is_self:
        yield await _seen(checks.PERMISSIONS, _permissions(reading, options))
    if options.is_self or not options.is_before:
        yield await _seen(webhooks.ADMISSION, _admission(reading, options))
    if options.namespace and not options.is_self:
        yield await _seen(room.QUOTA, _quota(reading, options.namespace))
        yield await _seen(room.PULL_SECRETS, _pull_secrets(reading, options.namespace))
    if options.is_before_upgrade:
        yield await _seen(upgrade.DEFINITIONS, upgrade.definitions(reading))
        yield await _seen(upgrade.PODS, _pods(reading, options.namespace))


async def _seen(name: str, finding: Awaitable[Finding]) -> Finding:
    """The finding, or that the one who asks may not look."""
    try:
        return await finding
    except Forbidden as error:
        text = f"cannot read it: {error.message}"
        return Finding(
            name,
            CheckResult.WARNING,
            text,
            ("run it as a user who can, or ask an administrator"),
        )


async def _equipment(reading: Reading) -> AsyncIterator[Finding]:
    async def storage() -> Finding:
        return checks.default_storage(await reading.all(StorageClass))

    async def gpus() -> Finding:
        return checks.gpus(await reading.all(Node))

    async def gpu_operator() -> Finding:
        return checks.gpu_operator(await reading.all(Pod, labels="app=gpu-operator"))

    yield await _seen(checks.STORAGE, storage())
    yield await _seen(checks.GPUS, gpus())
    yield await _seen(checks.GPU_OPERATOR, gpu_operator())


async def _definitions(reading: Reading, options: Options) -> AsyncIterator[Finding]:
    try:
        present = {each.metadata.name: each for each in await reading.all(Definition)}
    except Forbidden as error:
        text = f"cannot read it: {error.message}"
        yield Finding(kinds.DEFINITIONS, CheckResult.WARNING, text)
        return
    ours = [each.KIND for each in RESOURCES]
    yield kinds.definitions(ours, present, is_before=options.is_before)
    forbidden = await _forbidden(reading, options, present)
    for finding in kinds.other_projects(present, PROJECTS, forbidden):
        yield finding


async def _forbidden(
    reading: Reading, options: Options, present: Collection[str]
) -> dict[Kind, list[str]] | None:
    """The ServiceAccounts of operators that may not read an installed kind of an optional API, by that kind.

    None if no operator is known, or if only the operator itself may ask.
    """
    found: dict[Kind, list[str]] = {}
    installed = [each for api in OPTIONAL_APIS for each in api.kinds if str(each) in present]
    try:
        accounts = await _accounts(reading, options)
        for title, user, namespace in accounts:
            for kind in installed:
                if not await reviews.may_read(reading, user, kind, namespace):
                    found.setdefault(kind, []).append(title)
    except Forbidden:
        return None
    return found if accounts else None


async def _accounts(reading: Reading, options: Options) -> list[tuple[str, str, str]]:
    """Whose permissions to check: a name to show, a user name ("" is the caller), and a namespace or ""."""
    if options.is_self:
        return [("the current user", "", options.namespace)]
    if options.account:
        return [(options.account, _user(options.account), options.namespace)]
    return [
        (str(each.account), _user(str(each.account)), each.namespace)
        for each in await operators(reading)
    ]


def _user(account: str) -> str:
    """The user name of a ServiceAccount. Raises: ConfigError if it is not NAMESPACE/NAME."""
    namespace, slash, name = account.partition("/")
    if not slash:
        raise ConfigError("--account", f"expected NAMESPACE/NAME, got {account!r}")
    return f"system:serviceaccount:{namespace}:{name}"


async def _operators(reading: Reading, options: Options) -> AsyncIterator[Finding]:
    async def leader() -> Finding:
        lease = await reading.one(Lease, _ELECTION)
        found = leaders.leader(lease, datetime.now(UTC), is_before=options.is_before)
        if leaders.is_led(lease, datetime.now(UTC)):
            return found
        try:
            running = await operators(reading)
        except Forbidden:
            return found
        alone = [each.account for each in running if not (each.namespace or each.elects)]
        return leaders.without_election(alone, is_before=options.is_before) if alone else found

    async def own() -> Finding:
        marked = await reading.all(Lease, fields=f"metadata.name={MARKER_LEASE}")
        return checks.own_operators({each.metadata.namespace for each in marked})

    async def authorities() -> Finding:
        found = await reading.all(ValidatingWebhookConfiguration, labels=_OURS)
        return webhooks.authorities(found, datetime.now(UTC))

    yield await _seen(leaders.LEADER, leader())
    yield await _seen(checks.NAMESPACES, own())
    yield await _seen(webhooks.AUTHORITIES, authorities())


async def _permissions(reading: Reading, options: Options) -> Finding:
    user = _user(options.account) if options.account else ""
    lacks = await reviews.missing(reading, user, options.namespace)
    return checks.permissions(lacks, options.account or "the current user")


async def _admission(reading: Reading, options: Options) -> Finding:
    answer = await tried_mistake(reading, options.namespace or "default")
    return webhooks.admission(answer, is_expected=options.expects_webhooks)


async def _quota(reading: Reading, namespace: str) -> Finding:
    return room.quota(await reading.all(ResourceQuota, namespace=namespace))


async def _pull_secrets(reading: Reading, namespace: str) -> Finding:
    images = await images_of_graphs(reading, namespace)
    return room.pull_secrets(images, await registries(reading, namespace))


async def _pods(reading: Reading, namespace: str) -> Finding:
    return await upgrade.pods(reading, await rendering_settings(reading), namespace)
