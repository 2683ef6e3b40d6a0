"""The status of a DynamoGraphDeploymentRequest in both versions."""

from typing import Final

from dynamo_operator.versions import common_fields as common
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


def to_v1beta1(request: Fields, earlier: Fields) -> tuple[Object, Object]:
    """The status in v1beta1, and the part of this one to be saved."""
    state, deployment = request.get("state", ""), request.get("deployment", {})
    phase = _phase_of(state, deployment)
    name = deployment.get("name", "")
    agrees = earlier.get("dgdName", "") == name
    if earlier.get("phase") == "Deployed" and phase == state == "Ready" and agrees:
        phase = "Deployed"
    status: Object = {field: request[field] for field in _SAME if field in request}
    status["phase"] = phase
    if name:
        status["dgdName"] = name
    if phase == "Profiling":
        for field in _JOB:
            if field in earlier:
                status.setdefault(field, earlier[field])
    results = _some(earlier.get("profilingResults", {}), "pareto")
    if "generatedDeployment" in request:
        results["selectedConfig"] = request["generatedDeployment"]
    if results:
        status["profilingResults"] = results
    if "deploymentInfo" in earlier and agrees:
        status["deploymentInfo"] = earlier["deploymentInfo"]
    return status, _saved(request, state)


def _saved(request: Fields, state: str) -> Object:
    saved = _some(request, "backend", "profilingResults")
    is_odd = state not in _UNAMBIGUOUS
    deployment = request.get("deployment")
    if deployment is not None and (is_odd or deployment.keys() != {"name"}):
        saved["deployment"] = deployment
    if state and (is_odd or "deployment" in saved):
        saved["state"] = state
    return saved


def to_v1alpha1(request: Fields, saved: Fields) -> tuple[Object, Object]:
    """The status in v1alpha1, and the part of this one to be saved."""
    phase, name = request.get("phase", ""), request.get("dgdName", "")
    status: Object = {field: request[field] for field in _SAME if field in request}
    status["state"] = _STATES.get(phase, "Pending")
    if name:
        status["deployment"] = {"name": name}
    if "selectedConfig" in request.get("profilingResults", {}):
        status["generatedDeployment"] = request["profilingResults"]["selectedConfig"]
    status.update(_some(saved, "backend", "profilingResults"))
    saved_state, saved_deployment = saved.get("state", ""), saved.get("deployment")
    is_same_graph = (saved_deployment or {}).get("name", "") == name
    is_state_live = _is_phase_of(saved_state, phase)
    if saved_state and is_state_live and (is_same_graph or saved_state != "DeploymentDeleted"):
        status["state"] = saved_state
    if saved_deployment is not None and is_same_graph and (not saved_state or is_state_live):
        status["deployment"] = saved_deployment
    return status, _remainder(request, status)


def _remainder(request: Fields, status: Fields) -> Object:
    phase = request.get("phase")
    remainder: Object = {}
    if phase == "Deployed" and _phase_of(status["state"], status.get("deployment", {})) != phase:
        remainder = _some(request, "phase", "dgdName")
    if phase == "Profiling":
        remainder.update(_some(request, *_JOB))
    if pareto := _some(request.get("profilingResults", {}), "pareto"):
        remainder["profilingResults"] = pareto
    if "deploymentInfo" in request:
        remainder.update(_some(request, "deploymentInfo", "dgdName"))
    return remainder


def _phase_of(state: str, deployment: Fields) -> str:
    if state == "Ready" and deployment.get("created"):
        return "Deployed"
    return _PHASES.get(state, "Pending")


def _is_phase_of(state: str, phase: str) -> bool:
    return _PHASES.get(state, "Pending") == phase or (state == "Ready" and phase == "Deployed")


def _some(source: Fields, *names: str) -> Object:
    return {name: source[name] for name in names if name in source}
