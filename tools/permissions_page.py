"""The page docs/permissions.md, from the list in `dynamoctl.installation.permissions`."""

from collections.abc import Iterable
from pathlib import Path

from dynamoctl.installation.permissions import GRANTED, PROFILING_NODES, RULES, Feature, Name, Rule, Where
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "permissions.md"
HEAD = """\
# Permissions

<!-- Written by `make docs`. Source: `packages/dynamoctl/src/dynamoctl/installation/permissions.toml`. -->

The operator's permissions, and why it needs them. The chart's roles come from the same list, and a test
runs the operator with a ServiceAccount that has exactly these permissions. It contains no `*`.

A rule with a feature exists only if the feature is enabled: `grove`, `kai`, `leaderWorkerSet`, `istio` and
`inferencePool` unless `optionalApis` in the values withholds them, `webhooks` by `webhook.enabled`,
`ownCertificate` if neither cert-manager nor you issue the webhook certificate, `ownBundle` if the operator
writes the `caBundle`, `conversion` if it also writes that of CRDs (`webhook.conversion.enabled`, without
`webhook.clientCA`), `migration` if it rewrites stored objects (`webhook.conversion.migration`),
`metricsCertificate` and `metricsReview` by `metricsService.secure` and `metricsService.access`, `sshKeys`
unless `dynamo.mpiRun.secretName` is empty, `legacyKinds` by `legacyKinds.enabled`.
`clusterWide` and `restricted` are the two modes.

Two permissions are wider than their use. To find pull secrets the operator lists and watches Secrets by
their type, but RBAC cannot restrict a rule to one type: a holder of the operator's token can read all
Secrets where the operator works. The operator itself keeps only the names of registries. It may also bind,
but not change, the four ClusterRoles named below, without having their permissions itself: three in every
namespace with graphs, and the one that reads nodes in one ClusterRoleBinding, for the ServiceAccounts of
profiling Jobs with `enableGpuDiscovery`.
"""
_PLACES = {
    Where.GRAPHS: (
        "In namespaces with graphs",
        "ClusterRole `<fullname>-manager-role`; a Role of that name for a restricted operator.",
    ),
    Where.CLUSTER: (
        "Cluster-scoped",
        "The same ClusterRole; `<fullname>-<namespace>-cluster-scoped-role` for a restricted operator.",
    ),
    Where.OWN: ("In the operator's own namespace", "Role `<fullname>-own-role`."),
    Where.ELECTION: (
        "In the namespace of leader election",
        "Role `<fullname>-leader-election-role`, in `kube-system` or in the restricted namespace.",
    ),
}
_NAMES = {
    Name.ELECTION_LEASE: "`dynamo.nvidia.com`",
    Name.SSH_SECRET: "the value `dynamo.mpiRun.secretName`",
    Name.WEBHOOK_SECRET: "the value `webhook.certificateSecret.name`",
    Name.METRICS_SECRET: "`<fullname>-metrics-cert`",
    Name.WEBHOOK_CONFIGURATION: "`<fullname>-validating`",
    Name.PLANNER_ROLE: "`<fullname>-planner`",
    Name.EPP_ROLE: "`<fullname>-epp`",
    Name.PROFILING_ROLE: "`<fullname>-dgdr-profiling`",
    Name.PROFILING_NODES: "`<fullname>-dgdr-profiling-nodes`",
}


def page() -> str:
    """The page."""
    lines = [HEAD]
    for where, (title, text) in _PLACES.items():
        rules = [rule for rule in RULES if rule.where is where]
        lines += [f"## {title}\n", text, "", *_table(rules), ""]
    lines += ["## Permissions that the operator grants to pods\n"]
    lines += ["ClusterRoles; Roles with their ServiceAccounts for a restricted installation.", ""]
    for granted in GRANTED:
        lines += [f"### `{granted.name}`, for ServiceAccount `{granted.account}`\n"]
        lines += [*_table(granted.rules), ""]
    lines += ["### `dgdr-profiling-nodes`, for the same ServiceAccount with `enableGpuDiscovery`\n"]
    lines += [*_table(PROFILING_NODES), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(rules: Iterable[Rule]) -> list[str]:
    rows = []
    for rule in rules:
        resources = ", ".join(f"`{resource}`" for resource in rule.resources)
        names = [_NAMES[Name(name)] if name[0] == "$" else f"`{name}`" for name in rule.names]
        feature = "" if rule.feature is Feature.ALWAYS else f"`{rule.feature.value}`"
        verbs = ", ".join(rule.verbs)
        group = f"`{rule.group}`" if rule.group else ""
        rows.append((group, resources, verbs, ", ".join(names), feature, rule.why))
    return table(("group", "resources", "verbs", "names", "feature", "purpose"), rows)
