"""Writes docs/permissions.md from the list in `dynamo_operator.installation.permissions`."""

from collections.abc import Iterable
from pathlib import Path

from dynamo_operator.installation.granted import GRANTED, PROFILING_NODES
from dynamo_operator.installation.permissions import RULES
from dynamo_operator.installation.rule import Feature, Name, Rule, Where

PAGE = Path(__file__).parents[1] / "docs" / "permissions.md"
HEAD = """\
# Permissions

<!-- Written by `make docs`. Change the list in `src/dynamo_operator/installation/permissions.py`. -->

What the operator may do, and why. The roles of the chart are made from the same list, and a test runs the
operator as an account that has these permissions and no other. There is no `*` in it.

A rule with a feature is there only if that is switched on: `grove`, `kai`, `leaderWorkerSet`, `istio` and
`inferencePool` unless `optionalApis` in the values withholds them, `webhooks` by `webhook.enabled`,
`ownCertificate` if neither cert-manager nor you make their certificate, `ownBundle` if it is the operator
that tells the API server of it, `metricsCertificate` and `metricsReview` by `metricsService.secure` and
`metricsService.access`, `sshKeys` unless `dynamo.mpiRun.secretName` is empty.
`clusterWide` and `restricted` are the two modes.

Two things are wider than one would like. To find pull secrets the operator lists and watches Secrets by
their type, and Kubernetes has no permission for Secrets of one type: whoever has the operator's token can
read all Secrets where the operator works. The operator itself keeps the names of registries and drops the
rest. And it may bind, but not change, the four ClusterRoles that are named below, without holding what they
allow: three in every namespace with graphs, and that which reads nodes in one ClusterRoleBinding, which lists
the accounts of profiling Jobs with `enableGpuDiscovery`.
"""
_PLACES = {
    Where.GRAPHS: (
        "Where graphs are",
        "ClusterRole `<fullname>-manager-role`; of a restricted operator a Role of that name.",
    ),
    Where.CLUSTER: (
        "In no namespace",
        "In the same ClusterRole. Of a restricted operator: `<fullname>-<namespace>-cluster-scoped-role`.",
    ),
    Where.OWN: ("In the operator's own namespace", "Role `<fullname>-own-role`."),
    Where.ELECTION: (
        "Where the leader is chosen",
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
    lines += ["## What the operator's ClusterRoles give to pods\n"]
    lines += ["A restricted installation has them as Roles, with their accounts.", ""]
    for granted in GRANTED:
        lines += [f"### `{granted.name}`, for account `{granted.account}`\n"]
        lines += [*_table(granted.rules), ""]
    lines += ["### `dgdr-profiling-nodes`, for the same account where a request asks for it\n"]
    lines += [*_table(PROFILING_NODES), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(rules: Iterable[Rule]) -> list[str]:
    rows = ["| group | what | verbs | only | feature | why |", "|---|---|---|---|---|---|"]
    for rule in rules:
        what = ", ".join(f"`{each}`" for each in rule.resources)
        names = [_NAMES[each] if isinstance(each, Name) else f"`{each}`" for each in rule.names]
        feature = "" if rule.feature is Feature.ALWAYS else f"`{rule.feature.value}`"
        verbs = ", ".join(rule.verbs)
        group = f"`{rule.group}`" if rule.group else ""
        rows.append(f"| {group} | {what} | {verbs} | {', '.join(names)} | {feature} | {rule.why} |")
    return rows


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
