"""The status of a DynamoGraphDeploymentRequest in both versions."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions.parts import present, renamed, some, without
from kube_runtime.types.meta import Fields, Object

_SAME: Final = (*common.REQUEST_STATUS, "profilingPhase", "profilingJobName")
_PHASES: Final = {
    "Pending": "Pending",
    "Initializing": "Pending",
    "Profiling": "Profiling",
    "Ready": "Ready",
    "Deploying": "Deploying",
    "DeploymentDeleted": "Ready",
    "Failed": "Failed",
}
"""States of v1alpha1 and their phases of v1beta1. Any other state is Pending."""
_STATES: Final = {
    "Profiling": "Profiling",
    "Ready": "Ready",
    "Deploying": "Deploying",
    "Deployed": "Ready",
    "Failed": "Failed",
}
"""Phases and their states. Any other phase is Pending."""
_UNAMBIGUOUS: Final = ("", "Pending", "Profiling", "Ready", "Deploying", "Failed")
"""States that come back from their phase."""
_JOB: Final = ("profilingPhase", "profilingJobName")
_COUNTS: Final = ("replicas", "availableReplicas")
"""Fields of `deployment` in our v1alpha1, and of `deploymentInfo`."""


def to_v1beta1(request: Fields, earlier: Fields) -> tuple[Object, Object]:
    """The status in v1beta1, and the part of this one to be saved. `earlier` was saved of one in v1beta1."""
    state, deployment = request.get("state", ""), request.get("deployment", {})
    phase, name = _phase_of(state, deployment), deployment.get("name", "")
    is_same_graph = earlier.get("dgdName", "") == name
    if earlier.get("phase") == "Deployed" and phase == state == "Ready" and is_same_graph:
        phase = "Deployed"
    results = some(earlier.get("profilingResults", {}), ["pareto"])
    if "generatedDeployment" in request:
        results["selectedConfig"] = request["generatedDeployment"]
    status = {
        **(some(earlier, _JOB) if phase == "Profiling" else {}),
        **some(request, _SAME),
        "phase": phase,
        **present(dgdName=name, profilingResults=results),
        **(some(earlier, ["deploymentInfo"]) if is_same_graph else {}),
        **present(deploymentInfo=some(deployment, _COUNTS)),
    }
    return status, _saved(request, state)


def _saved(request: Fields, state: str) -> Object:
    saved = some(request, ("backend", "profilingResults"))
    is_odd = state not in _UNAMBIGUOUS
    if "deployment" in request and (is_odd or request["deployment"].keys() != {"name"}):
        saved["deployment"] = request["deployment"]
    if state and (is_odd or "deployment" in saved):
        saved["state"] = state
    return saved


def to_v1alpha1(request: Fields, saved: Fields) -> tuple[Object, Object]:
    """The status in v1alpha1, and the part of this one to be saved. `saved` was saved of one in v1alpha1."""
    phase, name = request.get("phase", ""), request.get("dgdName", "")
    results = request.get("profilingResults", {})
    status = {
        **some(request, _SAME),
        "state": _STATES.get(phase, "Pending"),
        **present(deployment=present(name=name)),
        **renamed(results, {"selectedConfig": "generatedDeployment"}),
        **some(saved, ("backend", "profilingResults")),
    }
    state, deployment = saved.get("state", ""), saved.get("deployment")
    is_live = _PHASES.get(state, "Pending") == phase or (state == "Ready" and phase == "Deployed")
    is_same_graph = (deployment or {}).get("name", "") == name
    if state and is_live and (is_same_graph or state != "DeploymentDeleted"):
        status["state"] = state
    if deployment is not None and is_same_graph and (is_live or not state):
        status["deployment"] = deployment
        if some(deployment, _COUNTS):  # the live ones
            live = some(request.get("deploymentInfo", {}), _COUNTS)
            status["deployment"] = {**without(deployment, *_COUNTS), **live}
    return status, _remainder(request, status)


def _remainder(request: Fields, status: Fields) -> Object:
    phase = request.get("phase")
    comes_back = _phase_of(status["state"], status.get("deployment", {})) == phase
    info = request.get("deploymentInfo")
    has_info = bool(info) and some(status.get("deployment", {}), _COUNTS) == info
    return {
        **(some(request, ("phase", "dgdName")) if phase == "Deployed" and not comes_back else {}),
        **(some(request, _JOB) if phase == "Profiling" else {}),
        **present(profilingResults=some(request.get("profilingResults", {}), ["pareto"])),
        **(
            some(request, ("deploymentInfo", "dgdName"))
            if "deploymentInfo" in request and not has_info
            else {}
        ),
    }


def _phase_of(state: str, deployment: Fields) -> str:
    if state == "Ready" and deployment.get("created"):
        return "Deployed"
    return _PHASES.get(state, "Pending")
