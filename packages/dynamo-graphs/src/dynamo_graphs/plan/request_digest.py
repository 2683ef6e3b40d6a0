"""Verify that profiling results were written by the Job of their request.

The ConfigMap with the results can be written by every pod with the profiling ServiceAccount and by every
user who may write ConfigMaps. The copier therefore reports a digest of each file as its termination
message, in the format of sha256sum, and only kubelets write the status of pods.

A user who may create pods can create one with the Job as its owner. So a report counts only if its pod
runs the Job's template, and all reports of a Job must agree.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from dynamo_graphs.api import names
from dynamo_graphs.api.profiling import COPIER, MOCKED_RESULTS_FILE, RESULTS_FILE, TOKEN_FOLDER
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request_graph import target
from dynamo_graphs.plan.request_output import BadOutput
from dynamo_graphs.types.profiling import JobInFull, JobPodInFull
from kube_runtime.apply.result import controls
from kube_runtime.kind import Object

_DIGEST_LENGTH = 64
_SIGNED = (RESULTS_FILE, MOCKED_RESULTS_FILE)
_PROGRAM = ("image", "command", "args", "env", "envFrom", "workingDir", "lifecycle")
"""Fields of a container that decide what it runs."""
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def require_confirmed(
    request: DynamoGraphDeploymentRequest,
    spec: DynamoGraphDeploymentRequestSpec,
    job: JobInFull | None,
    pods: Collection[JobPodInFull],
    data: Mapping[str, str],
) -> None:
    """Check that the Job's pods confirm the results as far as the spec uses them.

    Raises:
        BadOutput: they do not, or they report other results.
    """
    metadata, namespace = request.metadata, target(request, spec).namespace
    if not is_signed(job, pods, data) and namespace != metadata.namespace:
        raise BadOutput(
            "no pod of the profiling Job that runs the Job's template reports the digests of the results, "
            f"which are required to create objects in namespace {namespace}"
        )
    if spec.auto_apply and not is_confirmed(job, pods):
        raise BadOutput(
            "no pod of the profiling Job reports the digests of the results, so that anything may have "
            f"written them: review ConfigMap {names.profiling_output(metadata.name)}, and create the graph "
            "yourself"
        )


def is_signed(job: JobInFull | None, pods: Iterable[JobPodInFull], data: Mapping[str, str]) -> bool:
    """Whether a pod that runs the Job's template reports these results.

    Raises:
        BadOutput: a pod of the Job reports other results than these.
    """
    if job is None:
        return False
    reports = [(pod, digests) for pod in pods if controls(job, pod) for digests in _reports(pod)]
    actual = {
        name: hashlib.sha256(data[name].encode()).hexdigest() for name in _SIGNED if name in data
    }
    if any(digests != actual for _, digests in reports):
        raise BadOutput(
            "the output ConfigMap differs from what the profiling Job wrote (the digests that "
            "its pod reported do not match): something else changed it"
        )
    return any(runs_template(job.spec.template.spec, pod.spec) for pod, _ in reports)


def is_confirmed(job: JobInFull | None, pods: Iterable[JobPodInFull]) -> bool:
    """Whether a pod of the Job reports results, whatever it runs, or an earlier operator created the Job.

    That is enough to create the graph in the same namespace: a user who may create pods or Jobs there
    needs no graph for it. `is_signed` has compared the reports.
    """
    if job is None:
        return False
    copier = _named(job.spec.template.spec, "containers").get(COPIER) or {}
    if not {"copy-output", COPIER} & set(copier.get("args") or ()):
        return True  # the copier of an earlier operator reports nothing
    return any(report for pod in pods if controls(job, pod) for report in _reports(pod))


def runs_template(template: Object, pod: Object) -> bool:
    """Whether a pod runs the programs of a template, with the same ServiceAccount and the same volumes.

    Admission may add containers, such as sidecars, but they must not mount volumes of the template.
    """
    same = ("serviceAccountName", "shareProcessNamespace", "hostPID")
    if any(template.get(field) != pod.get(field) for field in same):
        return False
    volumes, theirs = _named(template, "volumes"), _named(pod, "volumes")
    if any(theirs.get(name) != volume for name, volume in volumes.items()):
        return False
    containers = _named(template, "containers")
    added = [
        container
        for kind in _CONTAINERS
        for container in pod.get(kind) or ()
        if kind != "containers" or container["name"] not in containers
    ]
    if any(mount["name"] in volumes for container in added for mount in _mounts(container)):
        return False
    running = _named(pod, "containers")
    return all(_runs(container, running.get(name)) for name, container in containers.items())


def _runs(container: Object, running: Object | None) -> bool:
    if running is None or any(container.get(name) != running.get(name) for name in _PROGRAM):
        return False
    declared, mounts = _mounts(container), _mounts(running)
    added = [mount for mount in mounts if mount not in declared]
    return all(mount in mounts for mount in declared) and all(
        mount["mountPath"] == TOKEN_FOLDER for mount in added
    )


def _named(spec: Object, field: str) -> Object:
    return {item["name"]: item for item in spec.get(field) or ()}


def _mounts(container: Object) -> list[Any]:
    return container.get("volumeMounts") or []


def _reports(pod: JobPodInFull) -> Iterator[dict[str, str]]:
    """Yield the digests by file that the copier reported, if it succeeded."""
    for container in pod.status.container_statuses:
        ended = container.state.terminated
        has_copied = container.name == COPIER and ended is not None and not ended.exit_code
        if report := _digests(ended.message) if ended is not None and has_copied else {}:
            yield report


def _digests(text: str) -> dict[str, str]:
    digests: dict[str, str] = {}
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        if name in _SIGNED and len(digest) == _DIGEST_LENGTH:
            digests[name] = digest
    return digests
