"""Whether results were written by the Job of their request.

Every pod with the profiling ServiceAccount, and every user who may write ConfigMaps, may write the ConfigMap
with the results. The copier therefore reports a digest of each file as its termination message, in the format
of sha256sum. Only kubelets write the status of pods.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from dynamo_graphs.api.profiling import COPIER, MOCKED_RESULTS_FILE, RESULTS_FILE
from dynamo_graphs.plan.request_output import BadOutput
from kube_runtime.apply.result import controls
from kube_runtime.types.batch import Job, JobPod

_DIGEST_LENGTH = 64
_SIGNED = (RESULTS_FILE, MOCKED_RESULTS_FILE)


def is_signed(job: Job | None, pods: Iterable[JobPod], data: Mapping[str, str]) -> bool:
    """Whether a pod of the Job vouches for the results; False if no pod says anything about them.

    Raises:
        BadOutput: the Job wrote other results than these.
    """
    reports = list(_reports(job, pods))
    if not reports:
        return False
    found = {
        name: hashlib.sha256(data[name].encode()).hexdigest() for name in _SIGNED if name in data
    }
    if found not in reports:
        raise BadOutput(
            "the output ConfigMap differs from what the profiling Job wrote (the digests that "
            "its pod reported do not match): something else changed it"
        )
    return True


def _reports(job: Job | None, pods: Iterable[JobPod]) -> Iterator[dict[str, str]]:
    """The digests of each file, as far as copiers that ended well report them."""
    for pod in pods:
        if job is None or not controls(job, pod):
            continue
        for each in pod.status.container_statuses:
            ended = each.state.terminated
            has_copied = each.name == COPIER and ended is not None and not ended.exit_code
            report = _digests(ended.message) if ended is not None and has_copied else {}
            if report:
                yield report


def _digests(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        if name in _SIGNED and len(digest) == _DIGEST_LENGTH:
            found[name] = digest
    return found
