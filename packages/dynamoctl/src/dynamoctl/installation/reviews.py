"""Check a user's permissions with access reviews."""

from collections.abc import Iterator, Sequence

from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.permissions import RULES
from dynamoctl.installation.rule import Feature, Name, Rule, Where
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.access import SelfSubjectAccessReview, SubjectAccessReview, question


async def missing(reading: Reading, user: str, namespace: str) -> list[str]:
    """The permissions that a user lacks, of the rules that every installation has.

    "" as `user` is the current user. `namespace` is that of a restricted operator, "" for a cluster-wide one.
    """
    lacks: list[str] = []
    for asked in _asked(namespace):
        if not await _may(reading, user, asked):
            lacks.append(f"{asked['verb']} {Key(asked['group'], asked['resource'])}")
    return lacks


async def may_read(reading: Reading, user: str, kind: Kind, namespace: str) -> bool:
    """Whether a user ("": the current one) may list and watch a kind in a namespace ("": in all)."""
    asked = {"group": kind.group, "resource": kind.plural}
    if namespace and kind.namespaced:
        asked["namespace"] = namespace
    for verb in ("list", "watch"):
        if not await _may(reading, user, {**asked, "verb": verb}):
            return False
    return True


async def _may(reading: Reading, user: str, attributes: dict[str, str]) -> bool:
    asked: Object = {"resourceAttributes": attributes}
    if not user:
        review = question(SelfSubjectAccessReview.KIND, asked)
        return (await reading.client.create(SelfSubjectAccessReview, review)).status.allowed
    groups = ["system:serviceaccounts", "system:authenticated"]
    review = question(SubjectAccessReview.KIND, {**asked, "user": user, "groups": groups})
    return (await reading.client.create(SubjectAccessReview, review)).status.allowed


def _checkable(namespace: str) -> Sequence[Rule]:
    """The rules that are the same in all installations: those without names that an installation chooses."""
    modes = {Feature.ALWAYS, Feature.RESTRICTED if namespace else Feature.CLUSTER_WIDE}
    return [
        rule
        for rule in RULES
        if rule.where is Where.GRAPHS
        and rule.feature in modes
        and not any(isinstance(name, Name) for name in rule.names)
    ]


def _asked(namespace: str) -> Iterator[dict[str, str]]:
    for rule in _checkable(namespace):
        for qualified in rule.resources:
            resource, _, subresource = qualified.partition("/")
            for verb in rule.verbs:
                attributes = {"group": rule.group, "resource": resource, "verb": verb}
                attributes |= {"namespace": namespace, "subresource": subresource}
                attributes |= {"name": str(rule.names[0])} if rule.names else {}
                yield {key: value for key, value in attributes.items() if value or key == "group"}
