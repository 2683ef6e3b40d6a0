"""Whether kinds are defined as this version uses them: our own, and those of projects that it can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamo_operator.installation.checks import Finding, Verdict
from dynamo_operator.installation.inventory import Definition
from dynamo_operator.kube.kind import Kind

DEFINITIONS = "Definitions"
_REMEDY = (
    "helm upgrade --install dynamo-crds, or: dynamoctl crds | kubectl apply --server-side -f -"
)


@dataclass(frozen=True, slots=True)
class Project:
    """Another project: the kinds of it that we use, and the value of the chart that lets us."""

    name: str
    kinds: tuple[Kind, ...]
    value: str


def definitions(
    wanted: Sequence[Kind], present: Mapping[str, Definition], *, is_before: bool
) -> Finding:
    """Whether our kinds are there, in our version. Before an installation it is no fault if none is."""
    missing = [str(each) for each in wanted if str(each) not in present]
    if is_before and len(missing) == len(wanted):
        return Finding(DEFINITIONS, Verdict.OK, "none is there yet")
    if missing:
        return Finding(DEFINITIONS, Verdict.FAIL, f"missing: {', '.join(missing)}", _REMEDY)
    unserved = [str(each) for each in wanted if not _serves(present[str(each)], each.version)]
    if unserved:
        text = f"not served in {wanted[0].version}: {', '.join(unserved)}"
        return Finding(DEFINITIONS, Verdict.FAIL, text, _REMEDY)
    lost = {str(each): _unreadable(present[str(each)]) for each in wanted}
    told = [f"{name} in {', '.join(versions)}" for name, versions in lost.items() if versions]
    if told:
        text = f"objects may be stored in versions that are not defined any more: {'; '.join(told)}"
        remedy = "see migrating stored versions in the documentation of Kubernetes"
        return Finding(DEFINITIONS, Verdict.WARNING, text, remedy)
    return Finding(DEFINITIONS, Verdict.OK, f"all {len(wanted)} are there")


def other_projects(present: Mapping[str, Definition], projects: Sequence[Project]) -> list[Finding]:
    """Which projects that the operator can use are installed, and the value that lets it."""
    return [found for each in projects if (found := _project(present, each))]


def _project(present: Mapping[str, Definition], project: Project) -> Finding | None:
    there = [each for each in project.kinds if str(each) in present]
    if not there:
        return None
    missing = [str(each) for each in project.kinds if each not in there]
    if missing:
        text = f"installed in part; missing: {', '.join(missing)}"
        return Finding(project.name, Verdict.WARNING, text, "it is used only if all of it is there")
    old = [each for each in there if not _serves(present[str(each)], each.version)]
    if old:
        text = f"{old[0]} is not served in {old[0].version}, the version that is used here"
        return Finding(project.name, Verdict.WARNING, text, f"install a {project.name} that has it")
    use = f"; to use it, set {project.value}" if project.value else ""
    return Finding(project.name, Verdict.OK, f"installed{use}")


def _serves(definition: Definition, version: str) -> bool:
    return any(each.name == version and each.served for each in definition.spec.versions)


def _unreadable(definition: Definition) -> list[str]:
    known = {each.name for each in definition.spec.versions}
    return [each for each in definition.status.stored_versions if each not in known]
