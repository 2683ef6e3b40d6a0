"""Check the CRDs: our own, and those of projects that the operator can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamo_graphs.types.optional_apis import OPTIONAL_APIS
from dynamoctl.installation.checks import CheckResult, Finding
from kube_runtime.kind import Kind
from kube_runtime.types.apiextensions import CustomResourceDefinition
from kube_runtime.types.meta import Resource, Struct

DEFINITIONS = "Definitions"
_MONITORING = "monitoring.coreos.com"
_VALUES = "dynamo-operator"
_REMEDY = (
    "helm upgrade --install dynamo-crds, or: dynamoctl crds | kubectl apply --server-side -f -"
)


class DefinedVersion(Struct):
    """A version of a kind, and whether it is served."""

    name: str = ""
    served: bool = False


class DefinitionSpec(Struct):
    """The versions of a kind."""

    versions: tuple[DefinedVersion, ...] = ()


class DefinitionStatus(Struct):
    """The versions in which objects may still be stored."""

    stored_versions: tuple[str, ...] = ()


class Definition(Resource):
    """A CRD with its versions, without its schemas, which take megabytes."""

    KIND = CustomResourceDefinition.KIND

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


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
    ours: Sequence[Kind], present: Mapping[str, Definition], *, is_before: bool
) -> Finding:
    """Whether our CRDs are installed, in our version. Before an installation all may be missing."""
    missing = [str(kind) for kind in ours if str(kind) not in present]
    if is_before and len(missing) == len(ours):
        return Finding(DEFINITIONS, CheckResult.OK, "none is installed yet")
    if missing:
        return Finding(DEFINITIONS, CheckResult.FAIL, f"missing: {', '.join(missing)}", _REMEDY)
    unserved = [str(kind) for kind in ours if not _serves(present[str(kind)], kind.version)]
    if unserved:
        text = f"not served in {ours[0].version}: {', '.join(unserved)}"
        return Finding(DEFINITIONS, CheckResult.FAIL, text, _REMEDY)
    lost = {str(kind): _unreadable(present[str(kind)]) for kind in ours}
    unreadable = [f"{name} in {', '.join(versions)}" for name, versions in lost.items() if versions]
    if unreadable:
        text = (
            f"objects may be stored in versions that are no longer defined: {'; '.join(unreadable)}"
        )
        remedy = "see migrating stored versions in the Kubernetes documentation"
        return Finding(DEFINITIONS, CheckResult.WARNING, text, remedy)
    return Finding(DEFINITIONS, CheckResult.OK, f"all {len(ours)} are installed")


def other_projects(
    present: Mapping[str, Definition],
    projects: Sequence[Project],
    forbidden: Mapping[Kind, Sequence[str]] | None = None,
) -> list[Finding]:
    """The installed projects, and whether the operator uses them.

    `forbidden` has the ServiceAccounts of operators that may not read a kind; None if no operator is known.
    """
    return [finding for project in projects if (finding := _project(present, project, forbidden))]


def _project(
    present: Mapping[str, Definition],
    project: Project,
    forbidden: Mapping[Kind, Sequence[str]] | None,
) -> Finding | None:
    there = [kind for kind in project.kinds if str(kind) in present]
    if not there:
        return None
    missing = [str(kind) for kind in project.kinds if kind not in there]
    if missing:
        text = f"partly installed; missing: {', '.join(missing)}"
        return Finding(
            project.name, CheckResult.WARNING, text, ("the operator uses it only if it is complete")
        )
    old = [kind for kind in there if not _serves(present[str(kind)], kind.version)]
    if old:
        text = f"{old[0]} is not served in {old[0].version}, the version that the operator uses"
        return Finding(
            project.name,
            CheckResult.WARNING,
            text,
            (f"install a {project.name} version that serves it"),
        )
    if forbidden is None or not project.granted_by:
        return Finding(project.name, CheckResult.OK, f"installed; {project.use}")
    withheld = [kind for kind in project.kinds if forbidden.get(kind)]
    if withheld:
        accounts = ", ".join(sorted({account for kind in withheld for account in forbidden[kind]}))
        kinds = ", ".join(str(kind) for kind in withheld)
        text = f"installed, but {accounts} may not read {kinds}: the operator does not use it"
        remedy = f"to use it, set {project.granted_by}"
        return Finding(project.name, CheckResult.WARNING, text, remedy)
    return Finding(project.name, CheckResult.OK, "installed, and the operator may use it")


def _serves(definition: Definition, version: str) -> bool:
    return any(defined.name == version and defined.served for defined in definition.spec.versions)


def _unreadable(definition: Definition) -> list[str]:
    defined = {version.name for version in definition.spec.versions}
    return [version for version in definition.status.stored_versions if version not in defined]


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
