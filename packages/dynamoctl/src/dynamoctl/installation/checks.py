"""Check the objects of a cluster for an installation. Each finding has a remedy.

Scripts search for the first four names, which are those of the reference's `pre-deployment-check.sh`.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from cryptography import x509

from dynamo_graphs.ages import counted, listed
from dynamo_graphs.leadership import ELECTION_LEASE, PODS, REMEDY, is_held, lapse
from dynamo_graphs.operators import Running
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.component.api import LATER
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import OPTIONAL_APIS, registry_of_image
from kube_runtime.times import seconds_between
from kube_runtime.types.kinds import Definition, Lease, Node, Pod, ValidatingWebhookConfiguration, Webhook
from kube_runtime.types.meta import Kind, Object, Resource, Struct, amount

OPERATOR = "dynamo-operator"
NATS = "nats:2.14.9-alpine"
ETCD = "quay.io/coreos/etcd:v3.6.8"


def images(release: str, registry: str = "") -> tuple[str, ...]:
    """The images of a version: the operator's, then those that only some graphs or chart values need.

    `registry` replaces the registry of each, as the chart's `global.imageRegistry` does.
    """
    older = LegacySettings()
    builders = (older.buildkit_image, older.buildkit_rootless_image)
    originals = (f"{OPERATOR}:{release}", RenderSettings().debugger_image, NATS, ETCD, *builders)
    return tuple(from_registry(image, registry) for image in originals)


def from_registry(image: str, registry: str) -> str:
    """The image's name in another registry; "" keeps its own."""
    if not registry:
        return image
    first, slash, rest = image.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return f"{registry.rstrip('/')}/{rest if has_host else image}"


CONNECTIVITY = "kubectl Connectivity"
STORAGE = "Default StorageClass"
GPUS = "Cluster GPU Resources"
GPU_OPERATOR = "GPU Operator"

OLDEST = (1, 27)
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_GPU_LABEL = "nvidia.com/gpu.present"
_GPU = "nvidia.com/gpu"


class StorageClass(Resource):
    """A StorageClass; whether it is the default one is an annotation."""

    KIND = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)


class QuotaStatus(Struct):
    """What a quota allows, and how much of it is used."""

    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(Resource):
    """The quota of a namespace."""

    KIND = Kind("", "v1", "ResourceQuota", "resourcequotas")

    status: QuotaStatus = QuotaStatus()


class CheckResult(Enum):
    """The result of a check. A warning passes."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, and what to do about it; "" if there is nothing to do."""

    name: str
    verdict: CheckResult
    text: str
    remedy: str = ""


def ok(text: str) -> Finding:
    """A check that passed."""
    return Finding("", CheckResult.OK, text)


def warning(text: str, remedy: str = "") -> Finding:
    """A check that passed, with something to look at."""
    return Finding("", CheckResult.WARNING, text, remedy)


def failed(text: str, remedy: str = "") -> Finding:
    """A check that failed."""
    return Finding("", CheckResult.FAIL, text, remedy)


def kubernetes_version(version: str) -> Finding:
    """Whether the API server is new enough. `version` is its `gitVersion`, such as `v1.36.3`."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is not None and (int(match[1]), int(match[2])) >= OLDEST:
        return ok(version)
    return failed(f"{version} is too old", f"use {'.'.join(map(str, OLDEST))} or newer")


def default_storage(classes: Sequence[StorageClass]) -> Finding:
    """Whether a PVC without a storage class gets a default."""
    names = sorted(it.metadata.name for it in classes)
    default = sorted(it.metadata.name for it in classes if it.metadata.annotations.get(_DEFAULT) == "true")
    if len(default) == 1:
        return ok(default[0])
    if default:
        return warning(f"there are several: {', '.join(default)}", "remove the annotation from all but one")
    if not names:
        return warning(
            "no StorageClass found", "install a storage provisioner; only graphs with PVCs need one"
        )
    patch = json.dumps({"metadata": {"annotations": {_DEFAULT: "true"}}})
    return warning(f"none of {', '.join(names)}", f"kubectl patch storageclass {names[0]} -p '{patch}'")


def gpus(nodes: Sequence[Node]) -> Finding:
    """Whether there are nodes with GPUs, and how many GPUs pods can have."""
    gpu_nodes = [node for node in nodes if node.metadata.labels.get(_GPU_LABEL) == "true"]
    if not gpu_nodes:
        remedy = f"install the NVIDIA GPU operator, which labels nodes with {_GPU_LABEL}=true"
        return failed("no node reports GPUs", remedy)
    return ok(f"{gpu_count(gpu_nodes)} GPUs on {len(gpu_nodes)} nodes")


def gpu_count(nodes: Sequence[Node]) -> int:
    """The number of GPUs that pods can have on nodes."""
    return sum(int(node.status.allocatable.get(_GPU, "0")) for node in nodes)


def gpu_operator(pods: Sequence[Pod], *, has_gpus: bool) -> Finding:
    """Whether the GPU operator runs. Where nodes report GPUs without it, something else does its work."""
    running = sum(pod.status.phase == "Running" for pod in pods)
    text = f"{running} of {len(pods)} pods run"
    if pods and running == len(pods):
        return ok(text)
    if running:
        return warning(text, "kubectl get pods -A -l app=gpu-operator")
    text = text if pods else "no pods found with app=gpu-operator"
    if has_gpus:
        return warning(f"{text}, but nodes report GPUs", "only needed if drivers or GPUs are missing")
    return failed(text, "install the NVIDIA GPU operator")


def own_operators(leases: Iterable[Lease], now: datetime) -> Finding:
    """The namespaces with their own operator, by marker Lease; a cluster-wide one skips them.

    One whose Lease has expired is managed by the cluster-wide operator again.
    """
    by_state: dict[bool, set[str]] = {True: set(), False: set()}
    for lease in leases:
        by_state[is_held(lease, now)].add(lease.metadata.namespace)
    text = ", ".join(sorted(by_state[True])) or "none"
    if expired := sorted(by_state[False] - by_state[True]):
        text += f"; until its Lease expired also {', '.join(expired)}"
    return ok(text)


def permissions(missing: Sequence[str], account: str) -> Finding:
    """Whether the operator's ServiceAccount has the permissions that the operator needs."""
    if not missing:
        return ok(f"{account} has all permissions that it needs")
    return failed(f"{account} lacks: {'; '.join(missing)}", "compare its roles with docs/permissions.md")


def unreachable(words: str) -> list[Finding]:
    """The findings for a cluster that does not answer."""
    others = (STORAGE, GPUS, GPU_OPERATOR)
    first = Finding(CONNECTIVITY, CheckResult.FAIL, words, "kubectl cluster-info")
    return [first, *(Finding(name, CheckResult.FAIL, "not checked") for name in others)]


def headline(findings: Sequence[Finding]) -> str:
    """The first line: the failed checks, if any."""
    names = [finding.name for finding in findings if finding.verdict is CheckResult.FAIL]
    warned = sum(finding.verdict is CheckResult.WARNING for finding in findings)
    warnings = f"; {counted(warned, 'warning')}" if warned else ""
    if not names:
        return f"No check failed{warnings}."
    return f"{len(names)} of {len(findings)} checks failed: {', '.join(names)}{warnings}."


def summary(findings: Sequence[Finding]) -> str:
    """The last line."""
    count = sum(finding.verdict is CheckResult.FAIL for finding in findings)
    return f"Summary: {len(findings) - count} passed, {count} failed"


def leader(lease: Lease | None, running: Sequence[Running], now: datetime, *, is_before: bool) -> Finding:
    """Which operator leads in the whole cluster. Before an installation, that would make two."""
    if lease is None or not is_held(lease, now):
        if alone := _alone(running):
            return _without_election(alone, is_before=is_before)
        return ok(f"no operator leads{f'; {lapse(lease, now)}' if lease else ''}")
    holder = lease.spec.holder_identity
    text = f"{holder} leads, by Lease {lease.key}"
    if not is_before:
        return ok(text)
    remedy = "upgrade that release, or install for one namespace: namespaceRestriction.enabled=true"
    return warning(text, remedy)


def absent(
    lease: Lease | None,
    running: Sequence[Running],
    now: datetime,
    *,
    own: Collection[str],
    waiting: Sequence[str],
    reconciled: int,
) -> Finding:
    """Whether an operator runs although none leads in the whole cluster.

    `own` are the namespaces whose own operator runs; of the graphs elsewhere, `waiting` have not been
    reconciled, and `reconciled` is the number of the others.
    """
    wait = (
        f"; {counted(len(waiting), 'graph')} not reconciled: {listed(waiting, _MOST_NAMED)}"
        if waiting
        else ""
    )
    alone = _alone(running)
    if any(operator.ready_replicas for operator in alone):
        return _without_election(alone, is_before=False)
    if cluster_wide := [operator for operator in running if not operator.namespace]:
        namespace, name = cluster_wide[0].deployment
        ready = counted(cluster_wide[0].ready_replicas, "ready pod")
        text = f"no operator leads: Deployment {namespace}/{name} has {ready}"
        return failed(f"{text}{wait}", f"kubectl describe pods -n {namespace} -l {PODS}")
    if lease is not None:
        return failed(f"no operator leads: {lapse(lease, now)}{wait}", REMEDY)
    if own and not waiting:
        return ok(f"none for the whole cluster; namespaces with their own: {', '.join(sorted(own))}")
    if reconciled and not waiting:
        text = f"no Lease or Deployment of one, but {counted(reconciled, 'graph')} reconciled"
        return warning(text, "if it runs outside the cluster, start it with --leader-elect")
    return failed(f"none found: no Lease {ELECTION_LEASE} and no Deployment{wait}", REMEDY)


def _alone(running: Sequence[Running]) -> list[Running]:
    return [operator for operator in running if not (operator.namespace or operator.elects)]


def _without_election(alone: Sequence[Running], *, is_before: bool) -> Finding:
    names = ", ".join(str(operator.account) for operator in alone)
    text = f"{names} runs without leader election, so that a second one would act beside it"
    remedy = "start it with --leader-elect, as the chart does, before another one is installed"
    result = CheckResult.WARNING if is_before or len(alone) > 1 else CheckResult.OK
    return Finding("", result, text, remedy if result is CheckResult.WARNING else "")


def quota(quotas: Sequence[ResourceQuota]) -> Finding:
    """What is left of the quotas of a namespace."""
    left = {
        f"{it.metadata.name}/{resource}": (amount(hard) or Decimal(0))
        - (amount(it.status.used.get(resource, "0")) or Decimal(0))
        for it in quotas
        for resource, hard in it.status.hard.items()
    }
    used_up = sorted(name for name, rest in left.items() if rest <= 0)
    if used_up:
        return warning(f"exhausted: {', '.join(used_up)}", "kubectl describe resourcequota")
    text = ", ".join(f"{name}: {float(rest):g} left" for name, rest in sorted(left.items()))
    return ok(text or "no quota found")


def pull_secrets(images: Iterable[str], registries: Collection[str]) -> Finding:
    """Whether there is a pull secret for each registry that graphs of a namespace pull from."""
    by_registry: Mapping[str, str] = {registry_of_image(image): image for image in images}
    missing = {host: image for host, image in by_registry.items() if host not in registries}
    if not by_registry:
        return ok("no graph names an image")
    if not missing:
        return ok(f"found for {', '.join(sorted(by_registry))}")
    text = "; ".join(f"{host} (as in {image})" for host, image in sorted(missing.items()))
    remedy = "public images need none; otherwise: kubectl create secret docker-registry"
    return warning(f"missing for {text}", remedy)


POLICY = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
VALUE = "dynamo-operator.namespacePolicy.releaseNamespace=false"
UNOBSERVED_SECONDS = 60.0
"""How old an object is before it counts as observed by no controller."""

_POLICY_SUFFIX = "-excluded-namespaces"
_MOST_NAMED = 5


def closed_namespaces(policies: Iterable[Object]) -> set[str]:
    """The namespaces in which a policy of the chart refuses the operator's writes."""
    return {
        namespace
        for policy in policies
        if policy["metadata"]["name"].endswith(_POLICY_SUFFIX)
        for term in policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        for namespace in term["values"]
    }


def graphs_in_closed(by_namespace: Mapping[str, Sequence[str]], *, is_before: bool) -> Finding:
    """Whether there are graphs in closed namespaces, which are those with an entry.

    Before an upgrade the policy is not there yet, and the namespaces are those of the operators that run.
    """
    named = [f"{space}/{name}" for space, names in sorted(by_namespace.items()) for name in names]
    if not named:
        return ok("none")
    will = "after the upgrade their pods keep running, but " if is_before else ""
    text = f"{listed(named, _MOST_NAMED)}: {will}the operator does not change them"
    remedy = (
        "create them in another namespace, or, if they are in the namespace of the release: "
        f"helm upgrade with --set {VALUE}"
    )
    return warning(text, remedy)


def unobserved(project: str, objects: Iterable[Object], now: datetime) -> Finding | None:
    """The objects without a status that are old enough to have one; None if there are none."""
    named = sorted(
        f"{body['kind']} {body['metadata'].get('namespace', '')}/{body['metadata']['name']}"
        for body in objects
        if not body.get("status")
        and (seconds_between(body["metadata"].get("creationTimestamp"), now) or 0) > UNOBSERVED_SECONDS
    )
    if not named:
        return None
    more = f" and {counted(len(named) - 1, 'other object')}" if len(named) > 1 else ""
    remedy = f"check that the controller of {project} runs: its CRDs alone create no pods"
    return warning(f"no controller has observed {named[0]}{more}", remedy)


_SOON = timedelta(days=7)
_CALLING = "failed calling webhook"
_REFUSED = "denied the request"


def authorities(configurations: Sequence[ValidatingWebhookConfiguration], now: datetime) -> Finding:
    """Whether each of our webhooks has a CA that does not expire soon."""
    ends: list[datetime] = []
    for configuration in configurations:
        for webhook in configuration.webhooks:
            try:
                ends.append(max(_ends(webhook)))
            except ValueError as error:
                name = f"{configuration.metadata.name}/{webhook.name}"
                remedy = "see the log of the operator, or of cert-manager"
                return failed(f"{name} {error}", remedy)
    if not ends:
        return ok("no Dynamo webhook is registered")
    first = min(ends)
    text = f"the first expires on {first:%Y-%m-%d}"
    if first - now >= _SOON:
        return ok(text)
    result = CheckResult.FAIL if first <= now else CheckResult.WARNING
    remedy = "check that the operator that renews it is running"
    return Finding("", result, text, remedy)


def _ends(webhook: Webhook) -> Iterable[datetime]:
    """Raises: ValueError with what is wrong."""
    if not webhook.client_config.ca_bundle:
        raise ValueError("has no caBundle")
    try:
        text = base64.b64decode(webhook.client_config.ca_bundle, validate=True)
        return [certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(text)]
    except (binascii.Error, ValueError) as error:
        raise ValueError("has a caBundle that is not PEM") from error


def admission(trial: str, *, is_expected: bool) -> Finding:
    """Check a dry run that a webhook should refuse; `trial` is the API server's error, "" if it accepted."""
    if _CALLING in trial:
        remedy = "check that a replica of the operator is ready and that the API server can reach its Service"
        return failed(trial, remedy)
    if _REFUSED in trial:
        return ok("the API server calls the webhooks and trusts them")
    if trial:
        return warning(f"the check failed: {trial}")
    if is_expected:
        remedy = "check that the webhook is registered for this namespace"
        return failed("no webhook refused an invalid graph", remedy)
    return ok("no webhooks; conditions report errors")


_MONITORING = "monitoring.coreos.com"
_VALUES = "dynamo-operator"
_REMEDY = "helm upgrade --install dynamo-crds, or: dynamoctl install crds | kubectl apply --server-side -f -"


@dataclass(frozen=True, slots=True)
class Project:
    """Another project: the kinds that we use, and how to enable its use.

    `granted_by` is the chart value that lets the operator read the kinds; "" if it does not read them.
    """

    name: str
    kinds: tuple[Kind, ...]
    use: str
    granted_by: str = ""


def definitions(
    ours: Sequence[Kind], present: Mapping[str, Definition], later: Collection[Kind] = (), *, is_before: bool
) -> Finding:
    """Whether our CRDs are installed, in our version. Before an installation all may be missing.

    The kinds of `later` may be served in v1beta1 instead.
    """
    missing = [str(kind) for kind in ours if str(kind) not in present]
    if is_before and len(missing) == len(ours):
        return ok("none is installed yet")
    if missing:
        return failed(f"missing: {', '.join(missing)}", _REMEDY)
    unserved = [
        str(kind)
        for kind in ours
        if not _serves(present[str(kind)], kind.version)
        and not (kind in later and _serves(present[str(kind)], LATER))
    ]
    if unserved:
        return failed(f"not served in {ours[0].version}: {', '.join(unserved)}", _REMEDY)
    unreadable = []
    for kind in ours:
        defined = {version.name for version in present[str(kind)].spec.versions}
        stored = present[str(kind)].status.stored_versions
        if lost := [version for version in stored if version not in defined]:
            unreadable.append(f"{kind} in {', '.join(lost)}")
    if unreadable:
        text = f"objects may be stored in versions that are no longer defined: {'; '.join(unreadable)}"
        remedy = "see migrating stored versions in the Kubernetes documentation"
        return warning(text, remedy)
    return ok(f"all {len(ours)} are installed")


def other_projects(
    present: Mapping[str, Definition],
    projects: Sequence[Project],
    forbidden: Mapping[Kind, Sequence[str]] | None = None,
) -> list[Finding]:
    """The installed projects, and whether the operator uses them.

    `forbidden` has the ServiceAccounts of operators that may not read a kind; None if no operator is known.
    """
    findings = []
    for project in projects:
        name = project.name
        there = [kind for kind in project.kinds if str(kind) in present]
        missing = [str(kind) for kind in project.kinds if kind not in there]
        old = [kind for kind in there if not _serves(present[str(kind)], kind.version)]
        withheld = [kind for kind in project.kinds if (forbidden or {}).get(kind)]
        if not there:
            continue
        if missing:
            text = f"partly installed; missing: {', '.join(missing)}"
            finding = warning(text, "the operator uses it only if it is complete")
        elif old:
            text = f"{old[0]} is not served in {old[0].version}, the version that the operator uses"
            finding = warning(text, f"install a {name} version that serves it")
        elif forbidden is None or not project.granted_by:
            finding = ok(f"installed; {project.use}")
        elif withheld:
            accounts = sorted({account for kind in withheld for account in forbidden[kind]})
            kinds = ", ".join(map(str, withheld))
            text = f"installed, but {', '.join(accounts)} may not read {kinds}"
            remedy = f"to use it, set {project.granted_by}"
            finding = warning(f"{text}: the operator does not use it", remedy)
        else:
            finding = ok("installed, and the operator may use it")
        findings.append(replace(finding, name=name))
    return findings


def _serves(definition: Definition, version: str) -> bool:
    return any(defined.name == version and defined.served for defined in definition.spec.versions)


PROJECTS = (
    *(
        Project(
            api.title,
            api.kinds,
            f"the operator uses it unless {api.value} is false",
            granted_by=f"{api.value}=true",
        )
        for api in OPTIONAL_APIS
    ),
    Project(
        "Prometheus operator",
        (
            Kind(_MONITORING, "v1", "ServiceMonitor", "servicemonitors"),
            Kind(_MONITORING, "v1", "PodMonitor", "podmonitors"),
            Kind(_MONITORING, "v1", "PrometheusRule", "prometheusrules"),
        ),
        f"to be scraped, see {_VALUES}.metricsService.serviceMonitor.enabled",
    ),
    Project(
        "cert-manager",
        (
            Kind("cert-manager.io", "v1", "Certificate", "certificates"),
            Kind("cert-manager.io", "v1", "Issuer", "issuers"),
        ),
        f"to use it, set {_VALUES}.webhook.certManager.enabled",
    ),
)
