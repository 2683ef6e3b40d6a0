"""Read everything that one reconcile of a DynamoNimRequest depends on, once, from the cache."""

from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_legacy.api.nim import DynamoNim
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.build.builder import CONFIG_MAP, NO_SETTINGS, BuilderSettings, builder_settings
from dynamo_legacy.build.image import SHARED_MARKER
from dynamo_legacy.build.job import BUILDER_ACCOUNT, IS_BUILDER
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.types import (
    BuilderAccount,
    BuilderConfig,
    BuildJob,
    BuildPod,
    SharedSecret,
)
from dynamo_operator.reconcile.owned_content import namespace_of, per_owner
from dynamo_operator.reconcile.transforms import slimmed
from kube_runtime.apply.result import controls
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

JOB_SELECTOR = f"{IS_BUILDER}=true"
"""Label selector of builds. Jobs of an earlier operator have the label too, and count as well."""


@dataclass(frozen=True, slots=True)
class RequestSnapshot:
    """The inputs of one reconcile.

    `jobs` are those that the request controls, `pods` the pods of these Jobs. `builder` are the
    administrator's settings, `builder_error` why they are invalid.
    """

    jobs: tuple[BuildJob, ...]
    pods: tuple[BuildPod, ...]
    nim: DynamoNim | None
    account: str
    builder: BuilderSettings
    builder_error: str = ""


def read_request(
    request: DynamoNimRequest, cache: Cache, settings: LegacySettings
) -> RequestSnapshot:
    """Read the inputs of a request."""
    namespace = request.metadata.namespace
    jobs = tuple(job for job in cache.list(BuildJob, namespace) if controls(request, job))
    uids = {job.metadata.uid for job in jobs}
    pods = tuple(
        pod
        for pod in cache.list(BuildPod, namespace)
        if pod.metadata.controller is not None and pod.metadata.controller.uid in uids
    )
    names = (account.metadata.name for account in cache.list(BuilderAccount, namespace))
    builder, error = NO_SETTINGS, ""
    if settings.builder_namespace:
        config = cache.get(BuilderConfig, Key(settings.builder_namespace, CONFIG_MAP))
        try:
            builder = builder_settings(config.data) if config is not None else NO_SETTINGS
        except ValueError as problem:
            error = str(problem)
    return RequestSnapshot(
        jobs=jobs,
        pods=pods,
        nim=cache.get(DynamoNim, request.key),
        account=min(names, default="default"),
        builder=builder,
        builder_error=error,
    )


def request_informers(namespace: str, settings: LegacySettings) -> Iterator[Informer[Resource]]:
    """The informers of Jobs, pods, Secrets and ServiceAccounts of builds, selected by labels."""
    yield Informer(BuildJob, namespace=namespace, labels=JOB_SELECTOR, transform=slimmed)
    yield Informer(BuildPod, namespace=namespace, labels=JOB_SELECTOR, transform=slimmed)
    marked = "=".join(SHARED_MARKER)
    yield per_owner(SharedSecret, namespace_of, namespace=namespace, labels=marked)
    yield Informer(
        BuilderAccount, namespace=namespace, labels=f"{BUILDER_ACCOUNT}=true", transform=slimmed
    )
    if settings.builder_namespace:
        yield Informer(
            BuilderConfig,
            namespace=settings.builder_namespace,
            fields=f"metadata.name={CONFIG_MAP}",
        )


def pod_watch(cache: Cache) -> Watches:
    """Wake a request when a pod of one of its Jobs changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        owner = changed.metadata.controller
        if owner is None:
            return
        job = cache.get(BuildJob, Key(changed.metadata.namespace, owner.name))
        if job is not None and job.metadata.controller is not None:
            yield Key(job.metadata.namespace, job.metadata.controller.name)

    return Watches(BuildPod, keys)
