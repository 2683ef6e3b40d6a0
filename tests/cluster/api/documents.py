"""Documents of all kinds, good and bad, and what is bad about them."""

from typing import Any

from kube_runtime.types.meta import Object


def document(kind: str, spec: Any, **metadata: Any) -> Object:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default", **metadata},
        "spec": spec,
    }


def graph(spec: Any, **metadata: Any) -> Object:
    return document("DynamoGraphDeployment", spec, **metadata)


def service(spec: Any) -> Object:
    return graph({"services": {"A": spec}})


def component(spec: Any) -> Object:
    return document("DynamoComponentDeployment", spec)


def main(container: Any) -> Object:
    """A graph whose service `A` has this main container."""
    return service({"extraPodSpec": {"mainContainer": container}})


def epp(config: Any) -> Object:
    """A graph whose service `A` has this configuration of an endpoint picker."""
    return service({"eppConfig": {"config": config}})


def adapter(spec: Any) -> Object:
    return document("DynamoGraphDeploymentScalingAdapter", spec)


def request(**spec: Any) -> Object:
    full = {"model": "m", "backend": "vllm", "profilingConfig": {"profilerImage": "i"}, **spec}
    return document("DynamoGraphDeploymentRequest", full)


def model(**spec: Any) -> Object:
    return document("DynamoModel", {"modelName": "m", "baseModelName": "b", **spec})


REFERENCE = {"name": "g", "serviceName": "A"}
EPP = {"plugins": [{"type": "t"}], "schedulingProfiles": [{"name": "p", "plugins": []}]}

POLICY = {"domain": "rack", "labelKey": "example.com/rack"}
IDENTITY = {"model": "m", "backendFramework": "vllm"}

GOOD: dict[str, Object] = {
    "two of three must run": service({"replicas": 3, "minAvailable": 2}),
    "three of none must run": service({"replicas": 0, "minAvailable": 3}),
    "a version of the runtime": service({"runtimeVersionOverride": "1.2.0"}),
    "GPU memory and failover": service(
        {"gpuMemoryService": {"enabled": True}, "failover": {"enabled": True, "numShadows": 3}}
    ),
    "a checkpoint": service({"checkpoint": {"identity": IDENTITY}}),
    "a frontend beside a worker": service({"frontendSidecar": {"image": "i", "envs": [{"name": "A"}]}}),
    "a topology": graph({"topologyConstraint": {"topologyProfile": "t", "packDomain": "zone"}}),
    "a transfer policy": graph({"experimental": {"kvTransferPolicy": POLICY}}),
    "a graph without spec": {k: v for k, v in graph({}).items() if k != "spec"},
    "a graph with an empty spec": graph({}),
    "a graph with nulls": graph({"services": None, "pvcs": None, "restart": None}),
    "a service without anything": service({}),
    "a service that is null": graph({"services": {"A": None}}),
    "the most services": graph({"services": {f"s{i}": {} for i in range(25)}}),
    "the most PVCs": graph({"pvcs": [{"name": f"c{i}"} for i in range(100)]}),
    "each backend": graph({"backendFramework": "trtllm"}),
    "a restart": graph({"restart": {"id": "1"}}),
    "a restart with a strategy": graph({"restart": {"id": "1", "strategy": {}}}),
    "a parallel restart": graph({"restart": {"id": "1", "strategy": {"type": "Parallel"}}}),
    "an ordered restart": graph({"restart": {"id": "1", "strategy": {"order": ["A", "B"]}}}),
    "no replicas": service({"replicas": 0}),
    "the most replicas": service({"replicas": 2**31 - 1}),
    "replicas with a point": service({"replicas": 2.0}),
    "two nodes": service({"multinode": {"nodeCount": 2}}),
    "the default number of nodes": service({"multinode": {}}),
    "a null number of nodes": service({"multinode": {"nodeCount": None}}),
    "a model reference": service({"modelRef": {"name": "m"}}),
    "an adapter switch": service({"scalingAdapter": {}}),
    "a mounted PVC": service({"volumeMounts": [{"name": "c"}]}),
    "sizes": service({"sharedMemory": {"size": "8Gi"}}),
    "a size as a number": service({"sharedMemory": {"size": 1024}}),
    "resource claims": service({"resources": {"claims": [{"name": "c"}]}}),
    "any component type": service({"componentType": "main"}),
    "a main container without name": main({"image": "i", "ports": [{"containerPort": 80}]}),
    "a port by name": service({"livenessProbe": {"httpGet": {"port": "http"}}}),
    "a gRPC probe": service({"readinessProbe": {"grpc": {"port": 1}}}),
    "pull secrets": service({"extraPodSpec": {"imagePullSecrets": [{"name": "s"}]}}),
    "a variable from a secret": graph(
        {"envs": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
    ),
    "a configuration in a ConfigMap": service({"eppConfig": {"configMapRef": {"key": "k"}}}),
    "a configuration": epp(EPP),
    "a configuration of a later version": epp({**EPP, "later": {"a": [None]}}),
    "parameters of any form": epp({**EPP, "plugins": [{"type": "t", "parameters": {"a": [1]}}]}),
    "old autoscaling": service({"autoscaling": {"enabled": True, "metrics": [{"type": "Resource"}]}}),
    "a component": component({"backendFramework": "sglang", "replicas": 1}),
    "an adapter": adapter({"replicas": 0, "dgdRef": REFERENCE}),
    "a request": request(),
    "a request with any configuration": request(
        profilingConfig={"profilerImage": "i", "config": {"a": {"b": [1, None]}}}
    ),
    "a request with a base document": request(
        profilingConfig={"profilerImage": "i", "configMapRef": {"name": "c"}}
    ),
    "a request with tolerations": request(
        profilingConfig={"profilerImage": "i", "tolerations": [{"tolerationSeconds": 2**40}]}
    ),
    "a model": model(),
    "a LoRA": model(modelType="lora", source={"uri": "s3://b/p"}),
    "worker metadata": document("DynamoWorkerMetadata", {"data": {"any": [{"thing": None}]}}),
    "labels": graph({}, labels={"a.b/c": "", "d": "E_f"}, annotations={"A.b/c": "any text\n"}),
    "null metadata": graph({}, labels=None, creationTimestamp=None),
}

BAD: dict[str, tuple[Object, set[str]]] = {
    "two of one must run": (service({"minAvailable": 2}), {"spec.services.A"}),
    "none must run": (service({"minAvailable": 0}), {"spec.services.A.minAvailable"}),
    "an odd version": (
        service({"runtimeVersionOverride": "1.2"}),
        {"spec.services.A.runtimeVersionOverride"},
    ),
    "a switch that is missing": (
        service({"gpuMemoryService": {}, "failover": {}}),
        {"spec.services.A.gpuMemoryService.enabled", "spec.services.A.failover.enabled"},
    ),
    "a client in another mode": (
        service({"gpuMemoryService": {"enabled": True, "mode": "interPod", "extraClientContainers": ["a"]}}),
        {"spec.services.A.gpuMemoryService"},
    ),
    "a mode of v1beta1": (
        service({"failover": {"enabled": True, "mode": "IntraPod"}}),
        {"spec.services.A.failover.mode"},
    ),
    "a checkpoint that is named and made": (
        service({"checkpoint": {"checkpointRef": "c", "job": {}}}),
        {"spec.services.A.checkpoint"},
    ),
    "a domain with capitals": (
        service({"topologyConstraint": {"packDomain": "Rack"}}),
        {"spec.services.A.topologyConstraint.packDomain"},
    ),
    "a policy of two keys": (
        graph({"experimental": {"kvTransferPolicy": {**POLICY, "clusterTopologyName": "t"}}}),
        {"spec.experimental.kvTransferPolicy"},
    ),
    "a weight without a preference": (
        graph({"experimental": {"kvTransferPolicy": {**POLICY, "preferredWeight": 0.5}}}),
        {"spec.experimental.kvTransferPolicy"},
    ),
    "a spec that is a list": (graph([]), {"spec"}),
    "too many services": (graph({"services": {f"s{i}": {} for i in range(26)}}), {"spec.services"}),
    "too many PVCs": (graph({"pvcs": [{"name": f"c{i}"} for i in range(101)]}), {"spec.pvcs"}),
    "PVCs without name": (graph({"pvcs": [{}, {"name": None}]}), {"spec.pvcs[0].name", "spec.pvcs[1].name"}),
    "a PVC that is null": (graph({"pvcs": [None]}), {"spec.pvcs[0]"}),
    "a misspelt backend": (graph({"backendFramework": "vlm"}), {"spec.backendFramework"}),
    "an incomplete PVC": (graph({"pvcs": [{"name": "c", "create": True, "size": "1Gi"}]}), {"spec.pvcs[0]"}),
    "a restart without id": (graph({"restart": {}}), {"spec.restart.id"}),
    "a restart with an empty id": (graph({"restart": {"id": ""}}), {"spec.restart.id"}),
    "an unknown strategy": (
        graph({"restart": {"id": "1", "strategy": {"type": "parallel"}}}),
        {"spec.restart.strategy.type"},
    ),
    "negative replicas": (service({"replicas": -1}), {"spec.services.A.replicas"}),
    "too many replicas": (service({"replicas": 2**31}), {"spec.services.A.replicas"}),
    "half a replica": (service({"replicas": 1.5}), {"spec.services.A.replicas"}),
    "replicas in words": (service({"replicas": "two"}), {"spec.services.A.replicas"}),
    "one node": (service({"multinode": {"nodeCount": 1}}), {"spec.services.A.multinode.nodeCount"}),
    "a model reference without name": (service({"modelRef": {}}), {"spec.services.A.modelRef.name"}),
    "a mount without name": (service({"volumeMounts": [{}]}), {"spec.services.A.volumeMounts[0].name"}),
    "an odd size": (service({"sharedMemory": {"size": "8Gb"}}), {"spec.services.A.sharedMemory.size"}),
    "a size with a point": (service({"sharedMemory": {"size": 1.5}}), {"spec.services.A.sharedMemory.size"}),
    "a resource claim without name": (
        service({"resources": {"claims": [{}]}}),
        {"spec.services.A.resources.claims[0].name"},
    ),
    "processors as a number": (
        service({"resources": {"limits": {"cpu": 2}}}),
        {"spec.services.A.resources.limits.cpu"},
    ),
    "typos on two levels": (
        service({"replcas": 1, "extraPodSpec": {"mainContainer": {"imagee": "i"}}}),
        {"spec.services.A.replcas", "spec.services.A.extraPodSpec.mainContainer.imagee"},
    ),
    "a container without name": (
        service({"extraPodSpec": {"containers": [{"image": "i"}]}}),
        {"spec.services.A.extraPodSpec.containers[0].name"},
    ),
    "a variable given twice": (
        main({"env": [{"name": "a"}, {"name": "a"}]}),
        {"spec.services.A.extraPodSpec.mainContainer.env[1]"},
    ),
    "a port given twice, once by default": (
        main({"ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}),
        {"spec.services.A.extraPodSpec.mainContainer.ports[1]"},
    ),
    "a probe without port": (
        service({"livenessProbe": {"httpGet": {}}}),
        {"spec.services.A.livenessProbe.httpGet.port"},
    ),
    "a port with a point": (
        service({"livenessProbe": {"httpGet": {"port": 1.5}}}),
        {"spec.services.A.livenessProbe.httpGet.port"},
    ),
    "a reference without key": (
        service({"eppConfig": {"configMapRef": {"name": "c"}}}),
        {"spec.services.A.eppConfig.configMapRef.key"},
    ),
    "an empty configuration": (
        epp({}),
        {"spec.services.A.eppConfig.config.plugins", "spec.services.A.eppConfig.config.schedulingProfiles"},
    ),
    "an incomplete configuration": (
        epp({"plugins": [{}], "schedulingProfiles": [{"plugins": [{}]}]}),
        {
            "spec.services.A.eppConfig.config.plugins[0].type",
            "spec.services.A.eppConfig.config.schedulingProfiles[0].name",
            "spec.services.A.eppConfig.config.schedulingProfiles[0].plugins[0].pluginRef",
        },
    ),
    "a component's unknown backend": (component({"backendFramework": "tgi"}), {"spec.backendFramework"}),
    "an adapter without anything": (adapter({}), {"spec.dgdRef", "spec.replicas"}),
    "an adapter of nothing": (
        adapter({"replicas": -1, "dgdRef": {"name": "", "serviceName": ""}}),
        {"spec.replicas", "spec.dgdRef.name", "spec.dgdRef.serviceName"},
    ),
    "an empty request": (
        document("DynamoGraphDeploymentRequest", {}),
        {"spec.model", "spec.backend", "spec.profilingConfig"},
    ),
    "a request for an unknown backend": (request(backend="tgi"), {"spec.backend"}),
    "a request without profiler": (
        request(profilingConfig={"config": [], "configMapRef": {}}),
        {
            "spec.profilingConfig.profilerImage",
            "spec.profilingConfig.config",
            "spec.profilingConfig.configMapRef.name",
        },
    ),
    "an empty model": (document("DynamoModel", {}), {"spec.modelName", "spec.baseModelName"}),
    "a model of unknown type": (model(modelType="LoRA"), {"spec.modelType"}),
    "a source without address": (model(source={}), {"spec.source.uri"}),
    "worker metadata without data": (document("DynamoWorkerMetadata", {}), {"spec.data"}),
    "a misspelt field of metadata": (graph({}, lables={}), {"metadata.lables"}),
    "a name with capitals": (graph({}, name="A_b"), {"metadata.name"}),
    "odd labels": (graph({}, labels={"a b": "c d"}), {"metadata.labels.a b"}),
    "a number as a label": (graph({}, labels={"a": 1}), {"metadata.labels.a"}),
    "a field beside the spec": ({**graph({}), "specs": {}}, {"specs"}),
}
