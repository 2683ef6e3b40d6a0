"""DynamoGraphDeploymentScalingAdapter in both versions: one field has another name."""

from kube_runtime.types.meta import Fields, Object


def to_v1beta1(adapter: Fields) -> Object:
    """The adapter in v1beta1, without apiVersion and kind."""
    return _with_target(adapter, "serviceName", "componentName")


def to_v1alpha1(adapter: Fields) -> Object:
    """The adapter in v1alpha1, without apiVersion and kind."""
    return _with_target(adapter, "componentName", "serviceName")


def _with_target(adapter: Fields, old: str, new: str) -> Object:
    spec = adapter.get("spec", {})
    result: Object = {"metadata": {}, **adapter}
    if "dgdRef" in spec:
        target = {new if name == old else name: value for name, value in spec["dgdRef"].items()}
        result["spec"] = {**spec, "dgdRef": target}
    return result
