"""Every message of the Go operator's rule tables is also ours, word for word.

Users search for these sentences, and scripts match them. Where ours says more, it begins with the same words.
"""

import pytest

from reviews.rows import ROWS

TOPOLOGY = "service topology is immutable and cannot be modified after creation: services "
SENTENCES = (
    (
        "spec.services[w].dynamoNamespace is deprecated and ignored. Value 'team' will be replaced with "
        "'lab-chat'. Remove this field from your configuration"
    ),
    "spec.services[w].replicas must be non-negative",
    "spec.services[w].ingress.host is required when ingress is enabled",
    "spec.services[w].volumeMounts[1].mountPoint is required when useAsCompilationCache is false",
    "spec.services[w].sharedMemory.size is required when disabled is false",
    (
        "spec.services[w]: cannot deploy EPP component: InferencePool API group "
        "(inference.networking.k8s.io) is not available in the cluster. EPP requires the Gateway API "
        "Inference Extension to be installed. Please install the Gateway API Inference Extension before "
        "deploying EPP components"
    ),
    (
        "spec.services[w]: EPP component cannot be multinode (multinode field must be nil or nodeCount "
        "must be 1)"
    ),
    "spec.services[w]: EPP component must have exactly 1 replica (found 3 replicas)",
    "spec.services[w].eppConfig is required for EPP components",
    (
        "spec.services[w].eppConfig: either configMapRef or config must be specified (no default "
        "configuration provided)"
    ),
    ("spec.services[w].eppConfig: configMapRef and config are mutually exclusive, only one can be specified"),
    "spec.services[w].eppConfig.configMapRef.name is required",
    "spec.services must have at least one service",
    "spec.pvcs[0].name is required",
    "spec.pvcs[0].storageClass is required when create is true",
    "spec.pvcs[0].size is required when create is true",
    "spec.pvcs[0].volumeAccessMode is required when create is true",
    "spec.restart.id is required",
    "spec.restart.strategy.order cannot be specified when strategy is parallel",
    "spec.restart.strategy.order must be unique",
    "spec.restart.strategy.order contains unknown service: zed",
    "spec.backendFramework is immutable and cannot be changed after creation",
    "Changing spec.backendFramework may cause unexpected behavior",
    "spec.services[w] cannot change node topology (between single-node and multi-node) after creation",
    f"{TOPOLOGY}added: [worker], services removed: [w]",
    f"{TOPOLOGY}added: [a b]",
    f"{TOPOLOGY}removed: [c]",
    "spec.ingress.host is required when ingress is enabled",
    "spec.profilingConfig.profilerImage is required",
    (
        "spec.enableGpuDiscovery can only be set to true for cluster-wide operators. "
        "Namespace-restricted operators cannot access cluster nodes for GPU discovery. Please set "
        "enableGpuDiscovery to false and provide hardware configuration "
        "(hardware.min_num_gpus_per_engine, hardware.max_num_gpus_per_engine, "
        "hardware.num_gpus_per_node) in spec.profilingConfig.config"
    ),
    "spec.profilingConfig.config.engine.backend (sglang) will be overwritten by spec.backend (vllm)",
    "spec.profilingConfig.config.deployment.model (other) will be overwritten by spec.model (m)",
    "spec.modelName is required",
    "spec.baseModelName is required",
    "spec.source is required when modelType is 'lora'",
    "spec.source.uri must be specified when modelType is 'lora'",
    "spec.modelType is immutable and cannot be changed after creation",
    "Changing spec.modelType may cause unexpected behavior",
    "spec.baseModelName is immutable and cannot be changed after creation",
    "Changing spec.baseModelName will break endpoint discovery",
)
"""Not among them: `spec.profilingConfig.config is required and must not be empty` and `failed to parse` it,
because it may be left out; `source URI must start with`, because there is a third scheme."""
LONGER = {
    "spec.services[w].autoscaling is deprecated and ignored. Use DynamoGraphDeploymentScalingAdapter "
    "with HPA, KEDA, or Planner for autoscaling instead. See docs/": "scaling.md",
    "spec.restart.strategy.order must have the same number of unique services as the deployment": (
        "; missing: "
    ),
    "spec.services[w].replicas cannot be modified directly when scaling adapter is enabled; scale or "
    "update the related DynamoGraphDeploymentScalingAdapter instead": ": kubectl scale dgdsa/",
    "source URI must start with 's3://'": ", 'hf://' or 'file://', got: https://x/y",
}
SAID = [line for row in ROWS for line in (*row.refused.splitlines(), *row.warnings)]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_same_is_said_in_the_same_words(sentence: str) -> None:
    assert sentence in SAID


@pytest.mark.parametrize(("sentence", "more"), LONGER.items())
def test_what_says_more_begins_with_the_same_words(sentence: str, more: str) -> None:
    assert any(each.startswith(f"{sentence}{more}") for each in SAID)
