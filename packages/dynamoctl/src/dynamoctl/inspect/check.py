"""`dynamoctl check`: check a cluster for missing prerequisites, read-only."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from cyclopts import CycloptsError
from rich.text import Text

from dynamo_graphs.leadership import ELECTION_LEASE, is_held
from dynamo_graphs.operators import operators, running_settings
from dynamo_graphs.reader import CONVERTED, NAME, Reading
from dynamo_operator import labels
from dynamo_operator.crds import RESOURCES
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import MARKER_LEASE
from dynamo_operator.shared.cluster import (
    GROVE,
    LEADER_WORKER_SET,
    OPTIONAL_APIS,
    LeaderWorkerSet,
    PodCliqueSet,
    PodGroup,
    PullSecret,
)
from dynamo_operator.shared.conditions import is_behind
from dynamo_operator.shared.transforms import registries_only
from dynamoctl.installation import checks, permissions, upgrade
from dynamoctl.installation.checks import PROJECTS, CheckResult, Finding, ResourceQuota, StorageClass
from dynamoctl.installation.upgrade import PULL_SECRETS
from dynamoctl.options import CheckOptions
from dynamoctl.screen import show, show_json
from dynamoctl.target import cluster
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import Forbidden, NotFound, Unreachable, visible
from kube_runtime.types.kinds import Definition, Lease, Node, Pod, ValidatingWebhookConfiguration
from kube_runtime.types.meta import Kind, Object

T = TypeVar("T")

_STYLES = {CheckResult.OK: "green", CheckResult.WARNING: "yellow", CheckResult.FAIL: "red"}
_OURS = "app.kubernetes.io/created-by=dynamo-operator"
_PART_OF = "app.kubernetes.io/part-of=dynamo-operator"
_WRITTEN = {GROVE.title: (PodCliqueSet.KIND,), LEADER_WORKER_SET.title: (LeaderWorkerSet.KIND, PodGroup.KIND)}
"""By project, the kinds that the operator writes and whose controllers always write a status."""


async def print_findings(options: CheckOptions, output: str) -> ExitCode:
    """Print the findings; the exit code.

    Raises: CycloptsError for an invalid namespace or ServiceAccount; OperatorError.
    """
    if options.account:
        _user(options.account)  # raises before anything is asked of the cluster
    try:
        async with cluster(options) as at:
            findings = [finding async for finding in _checked(at.reading, options)]
        has_failed = any(finding.verdict is CheckResult.FAIL for finding in findings)
        code = ExitCode.PROBLEMS if has_failed else ExitCode.OK
    except Unreachable as error:
        findings, code = checks.unreachable(str(error)), ExitCode.UNREACHABLE
    if output == "json":
        show_json([{**asdict(finding), "verdict": finding.verdict.value} for finding in findings])
        return code
    print(checks.headline(findings))
    for finding in findings:
        mark = f"{finding.verdict.value:<8} ", _STYLES[finding.verdict]
        show(Text.assemble(mark, visible(f"{finding.name}: {finding.text}")))
        if finding.remedy:
            show(visible(f"{'':<8} → {finding.remedy}"))
    print(checks.summary(findings))
    return code


async def _checked(reading: Reading, options: CheckOptions) -> AsyncIterator[Finding]:
    async def lacks() -> Finding:
        user = _user(options.account) if options.account else ""
        missing = await permissions.missing(reading, user, options.namespace)
        return checks.permissions(missing, options.account or "the current user")

    nodes: list[Node] = []

    async def gpus() -> Finding:
        nodes.extend(await reading.all(Node))
        return checks.gpus(nodes)

    async def pods() -> Finding:
        return await upgrade.pods(reading, await running_settings(reading), options.namespace)

    now = datetime.now(UTC)
    version = (await reading.client.get_json("version"))["gitVersion"]
    if not options.is_self:  # first: without an operator nothing else matters
        yield await _seen("Operator", _leader(reading, options, now))
    yield Finding(checks.CONNECTIVITY, CheckResult.OK, "the API server answers")
    if not options.is_self:
        yield await _judged(checks.STORAGE, reading.all(StorageClass), checks.default_storage)
        yield await _seen(checks.GPUS, gpus())
        pods_of_it = reading.all(Pod, labels="app=gpu-operator")
        judge = partial(checks.gpu_operator, has_gpus=checks.gpu_count(nodes) > 0)
        yield await _judged(checks.GPU_OPERATOR, pods_of_it, judge)
    yield replace(checks.kubernetes_version(version), name="Kubernetes Version")
    async for finding in _definitions(reading, options):
        yield finding
    if not options.is_self:
        markers = reading.all(Lease, fields=f"metadata.name={MARKER_LEASE}")
        own = partial(checks.own_operators, now=now)
        yield await _judged("Namespaces with an operator of their own", markers, own)
        configurations = reading.all(ValidatingWebhookConfiguration, labels=_OURS)
        yield await _judged("Webhook Authorities", configurations, partial(checks.authorities, now=now))
        yield await _seen("Graphs where the operator may not write", _closed(reading, options))
    if options.account or options.is_self:
        yield await _seen("Permissions", lacks())
    if options.is_self or not options.is_before:
        yield await _seen("Admission", _admission(reading, options))
    if options.namespace and not options.is_self:
        quotas = reading.all(ResourceQuota, namespace=options.namespace)
        yield await _judged("Quota", quotas, checks.quota)
        yield await _seen("Pull Secrets", _pull_secrets(reading, options.namespace))
    if options.is_before_upgrade:
        yield await _seen("Upgrade of CRDs", upgrade.definitions(reading))
        yield await _seen("Upgrade of Pods", pods())


async def _judged(name: str, objects: Awaitable[T], judge: Callable[[T], Finding]) -> Finding:
    async def judged() -> Finding:
        return judge(await objects)

    return await _seen(name, judged())


async def _seen(name: str, finding: Awaitable[Finding]) -> Finding:
    """The finding, or a warning if the user may not read what it needs."""
    try:
        result = await finding
    except Forbidden as error:
        remedy = "run it as a user who can, or ask an administrator"
        result = checks.warning(f"cannot read it: {error.message}", remedy)
    return replace(result, name=name)


async def _definitions(reading: Reading, options: CheckOptions) -> AsyncIterator[Finding]:
    name = "Definitions"
    try:
        present = {definition.metadata.name: definition for definition in await reading.all(Definition)}
    except Forbidden as error:
        yield replace(checks.warning(f"cannot read it: {error.message}"), name=name)
        return
    ours = [resource.KIND for resource in RESOURCES]
    later = [type_.KIND for type_ in CONVERTED]
    finding = checks.definitions(ours, present, later, is_before=options.is_before)
    yield replace(finding, name=name)
    forbidden = await _forbidden(reading, options, present)
    for finding in checks.other_projects(present, PROJECTS, forbidden):
        yield finding
    for title, written in _WRITTEN.items():
        there = [kind for kind in written if str(kind) in present]
        if unobserved := await _unobserved(reading, title, there):
            yield replace(unobserved, name=title)


async def _unobserved(reading: Reading, title: str, written: Iterable[Kind]) -> Finding | None:
    try:
        objects = [
            body
            for kind in written
            for body in await reading.all_raw(kind, "")
            if labels.LAST_APPLIED_HASH in body["metadata"].get("annotations", {})
        ]
    except (Forbidden, NotFound):
        return None  # the status of graphs reports them, too
    return checks.unobserved(title, objects, datetime.now(UTC))


async def _closed(reading: Reading, options: CheckOptions) -> Finding:
    try:
        policies = await reading.all_raw(checks.POLICY, "", labels=_PART_OF)
    except NotFound:  # Kubernetes before 1.30
        policies = []
    namespaces = checks.closed_namespaces(policies)
    if options.is_before_upgrade:
        running = await operators(reading)
        namespaces |= {operator.account.namespace for operator in running if not operator.namespace}
    try:
        graphs = {
            namespace: [
                body["metadata"]["name"]
                for body in await reading.all_raw(DynamoGraphDeployment.KIND, namespace)
            ]
            for namespace in sorted(namespaces)
        }
    except NotFound:  # our CRDs are not installed, which is a finding of its own
        graphs = {}
    return checks.graphs_in_closed(graphs, is_before=options.is_before_upgrade)


async def _forbidden(
    reading: Reading, options: CheckOptions, present: Collection[str]
) -> dict[Kind, list[str]] | None:
    """None if no operator is known, or if the user may not create access reviews."""
    forbidden: dict[Kind, list[str]] = {}
    installed = [kind for api in OPTIONAL_APIS for kind in api.kinds if str(kind) in present]
    try:
        accounts = await _accounts(reading, options)
        for title, user, namespace in accounts:
            for kind in installed:
                if not await permissions.may_read(reading, user, kind, namespace):
                    forbidden.setdefault(kind, []).append(title)
    except Forbidden:
        return None
    return forbidden if accounts else None


async def _accounts(reading: Reading, options: CheckOptions) -> list[tuple[str, str, str]]:
    """Whose permissions to check: a title, a user name ("" is the current user), and a namespace or ""."""
    if options.is_self:
        return [("the current user", "", options.namespace)]
    if options.account:
        return [(options.account, _user(options.account), options.namespace)]
    return [
        (str(operator.account), _user(str(operator.account)), operator.namespace)
        for operator in await operators(reading)
    ]


def _user(account: str) -> str:
    """The user name of a ServiceAccount. Raises: CycloptsError if it is not NAMESPACE/NAME."""
    namespace, _, name = account.partition("/")
    if not (NAME.fullmatch(namespace) and NAME.fullmatch(name)):
        raise CycloptsError(
            f'invalid ServiceAccount "{account}" (expected NAMESPACE/NAME, for example prod/operator)'
        )
    return f"system:serviceaccount:{namespace}:{name}"


async def _leader(reading: Reading, options: CheckOptions, now: datetime) -> Finding:
    lease = await reading.one(Lease, ELECTION_LEASE)
    try:
        running = await operators(reading)
    except Forbidden:
        running = []
    if options.is_before or is_held(lease, now):
        return checks.leader(lease, running, now, is_before=options.is_before)
    markers = await reading.all(Lease, fields=f"metadata.name={MARKER_LEASE}")
    own = {marker.metadata.namespace for marker in markers if is_held(marker, now)}
    waiting, done = [], 0
    try:
        for graph in await reading.all(DynamoGraphDeployment):
            if graph.metadata.namespace not in own and not graph.metadata.is_true(labels.PAUSED):
                done += not is_behind(graph)
                waiting += [str(graph.key)] * is_behind(graph)
    except NotFound:  # our CRDs are not installed, which is a finding of its own
        pass
    return checks.absent(lease, running, now, own=own, waiting=waiting, reconciled=done)


async def _admission(reading: Reading, options: CheckOptions) -> Finding:
    """Try a dry run of a graph that only the webhooks refuse, not the schema."""
    graph = DynamoGraphDeployment.KIND
    service = {"componentType": "frontend", "ingress": {"enabled": True}}
    body: Object = {
        "apiVersion": graph.api_version,
        "kind": graph.name,
        "metadata": {"name": "dynamoctl-check", "namespace": options.namespace or "default"},
        "spec": {"services": {"Frontend": service}},
    }
    stored = reading.client.stored(graph)
    answer = await reading.tried(stored, reading.shown(graph, body, stored.version))
    return checks.admission(answer, is_expected=options.expects_webhooks)


async def _pull_secrets(reading: Reading, namespace: str) -> Finding:
    try:
        graphs = await reading.all_raw(DynamoGraphDeployment.KIND, namespace)
    except NotFound:  # our CRDs are not installed, which is a finding of its own
        graphs = []
    images = {image for graph in graphs for image in _images(graph.get("spec"))}
    secrets = await reading.all(PullSecret, namespace=namespace, fields=PULL_SECRETS)
    registries = {host for secret in secrets for host in registries_only(secret).data}
    return checks.pull_secrets(images, registries)


def _images(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            if key == "image" and isinstance(entry, str):
                yield entry
            else:
                yield from _images(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _images(entry)
