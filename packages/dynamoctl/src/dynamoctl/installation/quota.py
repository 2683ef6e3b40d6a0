"""Whether a namespace has room for graphs, and the credentials for their images."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from dynamo_graphs.facts import registry_of_image
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.inventory import ResourceQuota
from kube_runtime.quantity import amount

QUOTA = "Quota"
PULL_SECRETS = "Pull Secrets"


def quota(found: Sequence[ResourceQuota]) -> Finding:
    """What is left of the quotas of a namespace."""
    left = {
        f"{each.metadata.name}/{resource}": _left(each, resource)
        for each in found
        for resource in each.status.hard
    }
    used_up = sorted(name for name, rest in left.items() if rest <= 0)
    if used_up:
        text = f"exhausted: {', '.join(used_up)}"
        return Finding(QUOTA, CheckResult.WARNING, text, "kubectl describe resourcequota")
    text = ", ".join(f"{name}: {float(rest):g} left" for name, rest in sorted(left.items()))
    return Finding(QUOTA, CheckResult.OK, text or "no quota found")


def _left(each: ResourceQuota, resource: str) -> Decimal:
    hard, used = (amount(of.get(resource, "0")) for of in (each.status.hard, each.status.used))
    return (hard or Decimal(0)) - (used or Decimal(0))


def pull_secrets(images: Iterable[str], registries: Collection[str]) -> Finding:
    """Whether there is a pull secret for each registry that graphs of a namespace pull from."""
    by_registry: Mapping[str, str] = {registry_of_image(each): each for each in images}
    missing = {host: image for host, image in by_registry.items() if host not in registries}
    if not by_registry:
        return Finding(PULL_SECRETS, CheckResult.OK, "no graph names an image")
    if not missing:
        return Finding(PULL_SECRETS, CheckResult.OK, f"found for {', '.join(sorted(by_registry))}")
    told = "; ".join(f"{host} (as in {image})" for host, image in sorted(missing.items()))
    remedy = "public images need none; otherwise: kubectl create secret docker-registry"
    return Finding(PULL_SECRETS, CheckResult.WARNING, f"missing for {told}", remedy)
