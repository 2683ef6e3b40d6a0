"""Whether kinds are defined as this version uses them: our own, and those of projects that it can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.inventory import Definition
from kube_runtime.kind import Kind

DEFINITIONS = "Definitions"
_REMEDY = (
    "helm upgrade --install dynamo-crds, or: dynamoctl crds | kubectl apply --server-side -f -"
)


@dataclass(frozen=True, slots=True)
class Project:
    """Another project: the kinds of it that we use, and how it comes into use.

    `granted_by` is the chart value with which the operator may read the kinds; "" if it need not.
    """

    name: str
    kinds: tuple[Kind, ...]
    use: str
    granted_by: str = ""


def definitions(
    wanted: Sequence[Kind], present: Mapping[str, Definition], *, is_before: bool
) -> Finding:
    """Whether our CRDs are installed, in our version. Before an installation all may be missing."""
    missing = [str(each) for each in wanted if str(each) not in present]
    if is_before and len(missing) == len(wanted):
        return Finding(DEFINITIONS, CheckResult.OK, "none is installed yet")
    if missing:
        return Finding(DEFINITIONS, CheckResult.FAIL, f"missing: {', '.join(missing)}", _REMEDY)
    unserved = [str(each) for each in wanted if not _serves(present[str(each)], each.version)]
    if unserved:
        text = f"not served in {wanted[0].version}: {', '.join(unserved)}"
        return Finding(DEFINITIONS, CheckResult.FAIL, text, _REMEDY)
    lost = {str(each): _unreadable(present[str(each)]) for each in wanted}
    told = [f"{name} in {', '.join(versions)}" for name, versions in lost.items() if versions]
    if told:
        text = f"objects may be stored in versions that are no longer defined: {'; '.join(told)}"
        remedy = "see migrating stored versions in the Kubernetes documentation"
        return Finding(DEFINITIONS, CheckResult.WARNING, text, remedy)
    return Finding(DEFINITIONS, CheckResult.OK, f"all {len(wanted)} are installed")


def other_projects(
    present: Mapping[str, Definition],
    projects: Sequence[Project],
    forbidden: Mapping[Kind, Sequence[str]] | None = None,
) -> list[Finding]:
    """Which projects that the operator can use are installed, and whether it uses them.

    `forbidden` has the ServiceAccounts of operators that may not read a kind; None if no operator is known.
    """
    return [found for each in projects if (found := _project(present, each, forbidden))]


def _project(
    present: Mapping[str, Definition],
    project: Project,
    forbidden: Mapping[Kind, Sequence[str]] | None,
) -> Finding | None:
    there = [each for each in project.kinds if str(each) in present]
    if not there:
        return None
    missing = [str(each) for each in project.kinds if each not in there]
    if missing:
        text = f"partly installed; missing: {', '.join(missing)}"
        return Finding(
            project.name, CheckResult.WARNING, text, ("the operator uses it only if it is complete")
        )
    old = [each for each in there if not _serves(present[str(each)], each.version)]
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
    withheld = [each for each in project.kinds if forbidden.get(each)]
    if withheld:
        accounts = ", ".join(sorted({who for each in withheld for who in forbidden[each]}))
        kinds = ", ".join(str(each) for each in withheld)
        text = f"installed, but {accounts} may not read {kinds}: the operator does not use it"
        remedy = f"to use it, set {project.granted_by}"
        return Finding(project.name, CheckResult.WARNING, text, remedy)
    return Finding(project.name, CheckResult.OK, "installed, and the operator may use it")


def _serves(definition: Definition, version: str) -> bool:
    return any(each.name == version and each.served for each in definition.spec.versions)


def _unreadable(definition: Definition) -> list[str]:
    known = {each.name for each in definition.spec.versions}
    return [each for each in definition.status.stored_versions if each not in known]
