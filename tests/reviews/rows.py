"""The rule tables of admission, row by row: an accepted and a refused example with its exact words.

The same rows are validated in the process and sent to a real API server.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube_runtime.types.meta import Object

GRAPH = "DynamoGraphDeployment"
COMPONENT = "DynamoComponentDeployment"
REQUEST = "DynamoGraphDeploymentRequest"
MODEL = "DynamoModel"
GROUP_VERSION = "nvidia.com/v1alpha1"

RESTARTED = ("spec.restart: has no effect on a new graph, whose pods are all new; v1beta1 does not allow it",)
POD = {"mainContainer": {"image": "r.example/vllm:0.9.0", "command": ["run"]}}


@dataclass(frozen=True, slots=True)
class Row:
    """One example. `old` None means: it is created. `refused` "" means: it is stored.

    `by_schema` is the message of the CRD, which refuses it before the webhook is called.
    """

    id: str
    new: Object
    old: Object | None = None
    refused: str = ""
    warnings: tuple[str, ...] = ()
    by_schema: str = ""
    user: str = "alice"
    restricted: bool = False
    pools_served: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.id}-{'refused' if self.refused else 'accepted'}"


def document(kind: str, spec: Object) -> Object:
    metadata = {"name": "chat", "namespace": "lab"}
    return {"apiVersion": GROUP_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def graph(services: Object | None = None, **spec: Any) -> Object:
    """A graph of these services; of one worker `w` if none are given."""
    chosen = services if services is not None else {"w": worker()}
    return document(GRAPH, {"services": chosen, **spec})


def worker(**fields: Any) -> Object:
    return {"componentType": "worker", "extraPodSpec": POD, **fields}


def picker(**fields: Any) -> Object:
    """An endpoint picker with its configuration."""
    config = {"configMapRef": {"name": "epp-cfg", "key": "epp.yaml"}}
    return {"componentType": "epp", "extraPodSpec": POD, "eppConfig": config, **fields}


def component(**spec: Any) -> Object:
    return document(COMPONENT, {"componentType": "worker", "extraPodSpec": POD, **spec})


def request(**spec: Any) -> Object:
    """A request that is complete."""
    profiling = {"profilerImage": "r/p:1", "config": {"sla": {"ttft": 200}}}
    return document(REQUEST, {"model": "m", "backend": "vllm", "profilingConfig": profiling, **spec})


def profiling(**config: Any) -> Object:
    """The profiling section of a request, with that configuration."""
    return {"profilerImage": "r/p:1", "config": config}


def model(**spec: Any) -> Object:
    return document(MODEL, {"modelName": "a", "baseModelName": "b", **spec})


def lora(uri: str) -> Object:
    """A LoRA from there."""
    return model(modelType="lora", source={"uri": uri})


def with_service(**fields: Any) -> Object:
    return graph({"w": worker(**fields)})


def with_picker(**fields: Any) -> Object:
    frontend = {"componentType": "frontend", "extraPodSpec": POD}
    return graph({"Frontend": frontend, "w": picker(**fields)})


def picked(id_: str, refused: str = "", /, **fields: Any) -> Row:
    """A graph of a picker with these fields where pools are served; `refused` is said of its service."""
    return Row(id_, with_picker(**fields), pools_served=True, refused=refused and f"{SHOWN}{refused}")


SHOWN = "spec.services[w]"
_CLAIM = {
    "name": "m",
    "create": True,
    "storageClass": "fast",
    "size": "20Gi",
    "volumeAccessMode": "ReadWriteMany",
}
_POOLS = (
    "spec.services[w]: cannot deploy EPP component: InferencePool API group "
    "(inference.networking.k8s.io) is not available in the cluster. EPP requires the Gateway API "
    "Inference Extension to be installed. Please install the Gateway API Inference Extension before "
    "deploying EPP components"
)
_AUTOSCALING = (
    "spec.services[w].autoscaling is deprecated and ignored. Use "
    "DynamoGraphDeploymentScalingAdapter with HPA, KEDA, or Planner for autoscaling instead. See "
    "docs/scaling.md"
)


def shared_rows() -> Iterator[Row]:
    """S1 to S13, in a graph's service `w`."""
    yield Row("S1", with_service())
    namespace = (
        "spec.services[w].dynamoNamespace is deprecated and ignored. Value 'team' will be replaced "
        "with '{}'. Remove this field from your configuration"
    )
    yield Row("S1", with_service(dynamoNamespace="team"), warnings=(namespace.format("lab-chat"),))
    yield Row(
        "S1",
        with_service(dynamoNamespace="team", globalDynamoNamespace=True),
        warnings=(namespace.format("dynamo"),),
    )
    yield Row("S2", with_service(replicas=0))
    yield Row(
        "S2",
        with_service(replicas=-2),
        refused=f"{SHOWN}.replicas must be non-negative",
        by_schema="should be greater than or equal to 0",
    )
    nginx = {"ingressControllerClassName": "nginx"}
    yield Row("S3", with_service(ingress={"enabled": True, "host": "chat", **nginx}))
    yield Row("S3", with_service(ingress={"enabled": False}))
    yield Row(
        "S3",
        with_service(ingress={"enabled": True}),
        refused=f"{SHOWN}.ingress.host is required when ingress is enabled",
    )
    mounts = [{"name": "a", "mountPoint": "/a"}]
    yield Row(
        "S4",
        graph(
            {"w": worker(volumeMounts=[{"name": "c", "useAsCompilationCache": True}])},
            pvcs=[{"name": "c"}],
            backendFramework="vllm",
        ),
    )
    yield Row(
        "S4",
        graph({"w": worker(volumeMounts=[*mounts, {"name": "b"}])}, pvcs=[{"name": "a"}, {"name": "b"}]),
        refused=f"{SHOWN}.volumeMounts[1].mountPoint is required when useAsCompilationCache is false",
    )
    yield Row("S5", with_service(sharedMemory={"disabled": True}))
    yield Row("S5", with_service(sharedMemory={"size": "2Gi"}))
    for size in ({}, {"size": "0"}):
        yield Row(
            "S5",
            with_service(sharedMemory=size),
            refused=f"{SHOWN}.sharedMemory.size is required when disabled is false",
        )
    yield Row("S6", with_service(autoscaling={"enabled": False}), warnings=(_AUTOSCALING,))
    yield picked("S7")
    yield Row("S7", with_picker(), pools_served=False, refused=_POOLS)
    yield picked("S8")
    several = "EPP component cannot be multinode (multinode field must be nil or nodeCount must be 1)"
    yield picked("S8", f": {several}", multinode={"nodeCount": 2})
    yield picked("S9", replicas=1)
    for count in (0, 3):
        words = f": EPP component must have exactly 1 replica (found {count} replicas)"
        yield picked("S9", words, replicas=count)
    yield picked("S10", ".eppConfig is required for EPP components", eppConfig=None)
    nothing = "either configMapRef or config must be specified (no default configuration provided)"
    yield picked("S11")
    yield picked("S11", f".eppConfig: {nothing}", eppConfig={})
    reference = {"configMapRef": {"name": "epp-cfg", "key": "epp.yaml"}}
    config: Object = {"config": {"plugins": [], "schedulingProfiles": []}}
    yield picked("S12", eppConfig=config)
    both = "configMapRef and config are mutually exclusive, only one can be specified"
    yield picked("S12", f".eppConfig: {both}", eppConfig={**reference, **config})
    nameless = {"configMapRef": {"key": "epp.yaml"}}
    yield picked("S13", ".eppConfig.configMapRef.name is required", eppConfig=nameless)


def graph_rows() -> Iterator[Row]:
    """G1 to G10."""
    yield Row("G1", graph({"Frontend": {"extraPodSpec": POD}}))
    yield Row("G1", document(GRAPH, {}), refused="spec.services must have at least one service")
    yield Row("G1", graph({}), refused="spec.services must have at least one service")
    yield Row("G2-G5", graph(pvcs=[_CLAIM]))
    yield Row("G2-G5", graph(pvcs=[{"name": "m"}]))
    empty = {"name": "", "create": True, "storageClass": "", "size": "0", "volumeAccessMode": ""}
    yield Row(
        "G2-G5",
        graph(pvcs=[empty]),
        refused="spec.pvcs[0].name is required\n"
        "spec.pvcs[0].size is required when create is true\n"
        "spec.pvcs[0].storageClass is required when create is true\n"
        "spec.pvcs[0].volumeAccessMode is required when create is true",
    )
    yield Row("G6", graph(restart={"id": "r1"}), graph())
    yield Row("G6", graph(restart={"id": "r1"}), warnings=RESTARTED)
    yield Row(
        "G6",
        graph(restart={"id": ""}),
        refused="spec.restart.id is required",
        by_schema="should be at least 1 chars long",
    )
    pair = {"a": worker(), "b": worker()}
    order = "spec.restart.strategy.order"

    def restarted(services: Object, **strategy: Any) -> Object:
        return graph(services, restart={"id": "r1", "strategy": strategy})

    yield Row("G7", restarted({"w": worker()}, type="Parallel"), graph())
    yield Row(
        "G7",
        restarted({"w": worker()}, type="Parallel", order=["w"]),
        refused=f"{order} cannot be specified when strategy is parallel",
    )
    yield Row("G8-G9", restarted(pair, type="Sequential", order=["b", "a"]), graph(pair))
    yield Row(
        "G8-G9",
        restarted(pair, type="Sequential", order=["a", "a"]),
        refused=f"{order} must have the same number of unique services as the deployment; "
        f"missing: b\n{order} must be unique",
    )
    yield Row(
        "G10",
        restarted(pair, type="Sequential", order=["a", "zed"]),
        refused=f"{order} must have the same number of unique services as the deployment; "
        f"missing: b\n{order} contains unknown service: zed",
    )


def graph_update_rows() -> Iterator[Row]:
    """U1 to U3, and restarts during rolling updates."""
    vllm = graph(backendFramework="vllm")
    changing = ("Changing spec.backendFramework may cause unexpected behavior",)
    framework = "spec.backendFramework is immutable and cannot be changed after creation"
    yield Row("U1", vllm, vllm)
    for new, old in ((graph(backendFramework="sglang"), vllm), (vllm, graph())):
        yield Row("U1", new, old, refused=framework, warnings=changing, by_schema=framework)
    main = {**POD["mainContainer"], "args": ["serve"]}

    def on_nodes(count: int) -> Object:
        pod = {"mainContainer": main}
        spread = {"multinode": {"nodeCount": count}} if count > 1 else {}
        return with_service(extraPodSpec=pod, **spread)

    yield Row("U2", on_nodes(3), on_nodes(2))
    topology = (
        "spec.services[w] cannot change node topology (between single-node and multi-node) after creation"
    )
    for after, before in ((2, 1), (1, 2)):
        yield Row(
            "U2",
            on_nodes(after),
            on_nodes(before),
            refused=topology,
            by_schema="cannot change node topology (between single-node and multi-node) after creation",
        )
    fixed = "service topology is immutable and cannot be modified after creation: "
    other = {"mainContainer": {**POD["mainContainer"], "image": "r.example/vllm:0.9.1"}}
    yield Row("U3", with_service(extraPodSpec=other), graph())
    yield Row(
        "U3",
        graph({"worker": worker()}),
        graph(),
        refused=f"{fixed}services added: [worker], services removed: [w]",
    )
    yield Row(
        "U3",
        graph({"w": worker(), "b": worker(), "a": worker()}),
        graph(),
        refused=f"{fixed}services added: [a b]",
    )
    yield Row("U3", graph(), graph({"w": worker(), "c": worker()}), refused=f"{fixed}services removed: [c]")


def adapted(replicas: int | None, *, enabled: bool = True) -> Object:
    """A graph whose service has so many replicas, and a scaling adapter if `enabled`."""
    number = {} if replicas is None else {"replicas": replicas}
    return with_service(scalingAdapter={"enabled": enabled}, **number)


def taken(replicas: int) -> str:
    """How a direct change of an adapter's number is refused."""
    return (
        "spec.services[w].replicas cannot be modified directly when scaling adapter is enabled; "
        "scale or update the related DynamoGraphDeploymentScalingAdapter instead: kubectl scale "
        f"dgdsa/chat-w -n lab --replicas={replicas}, or leave replicas out of the manifest"
    )


def adapter_rows() -> Iterator[Row]:
    """U4: who may change a number that an adapter owns."""
    accounts = "system:serviceaccount"
    may = (
        f"{accounts}:dyn:dynamo-platform-dynamo-operator-controller-manager",
        f"{accounts}:lab:planner-serviceaccount",
    )
    may_not = (
        f"{accounts}:evil:my-planner-serviceaccount",
        f"{accounts}:evil:planner-serviceaccount",
        f"{accounts}:lab:my-planner-serviceaccount",
        f"{accounts}:lab:dynamo-platform-dynamo-operator-controller-manager",
        f"{accounts}:dyn:dynamo-operator-controller-manager",
        f"{accounts}:kube-system:horizontal-pod-autoscaler",
        "kubernetes-admin",
    )
    for user in may:
        yield Row("U4", adapted(3), adapted(1), user=user)
    for user in may_not:
        yield Row("U4", adapted(3), adapted(1), user=user, refused=taken(3))
    yield Row("U4", adapted(4, enabled=False), adapted(1, enabled=False))
    yield Row("U4", adapted(4, enabled=False), adapted(1))
    yield Row("U4", adapted(4), adapted(1, enabled=False), refused=taken(4))
    yield Row("U4", adapted(1), adapted(None))
    yield Row("U4", adapted(None), adapted(5))
    yield Row("U4", adapted(2), adapted(None), refused=taken(2))


def component_rows() -> Iterator[Row]:
    yield Row("DCD", component(replicas=2))
    yield Row(
        "DCD",
        component(ingress={"enabled": True}),
        refused="spec.ingress.host is required when ingress is enabled",
    )
    yield Row("DCD", component(replicas=3), component(replicas=1))
    yield Row(
        "DCD-U1",
        component(backendFramework="trtllm"),
        component(backendFramework="vllm"),
        refused="spec.backendFramework is immutable and cannot be changed after creation",
        by_schema="spec.backendFramework is immutable and cannot be changed after creation",
        warnings=("Changing spec.backendFramework may cause unexpected behavior",),
    )


def request_rows() -> Iterator[Row]:
    """R1 to R6."""
    yield Row("R1-R2", request())
    yield Row("R2", request(profilingConfig=profiling()))
    yield Row(
        "R1-R2",
        request(profilingConfig={"profilerImage": ""}),
        refused="spec.profilingConfig.profilerImage is required",
    )
    yield Row("R2", request(profilingConfig={"profilerImage": "r/p:1"}))
    yield Row("R3", request(enableGpuDiscovery=True))
    yield Row(
        "R3",
        request(enableGpuDiscovery=True),
        restricted=True,
        refused="spec.enableGpuDiscovery can only be set to true for cluster-wide operators. "
        "Namespace-restricted operators cannot access cluster nodes for GPU discovery. Please set "
        "enableGpuDiscovery to false and provide hardware configuration "
        "(hardware.min_num_gpus_per_engine, hardware.max_num_gpus_per_engine, "
        "hardware.num_gpus_per_node) in spec.profilingConfig.config",
    )
    yield Row(
        "R4",
        request(profilingConfig={"profilerImage": "r/p:1", "config": "sla: {}"}),
        refused="spec.profilingConfig.config: Expected `object | null`, got `str`",
        by_schema="must be of type object",
    )
    config = "spec.profilingConfig.config"
    yield Row(
        "R5",
        request(profilingConfig=profiling(engine={"backend": "sglang"})),
        warnings=(f"{config}.engine.backend (sglang) will be overwritten by spec.backend (vllm)",),
    )
    yield Row("R5", request(profilingConfig=profiling(engine={"backend": "vllm"})))
    yield Row(
        "R6",
        request(profilingConfig=profiling(deployment={"model": "other"})),
        warnings=(f"{config}.deployment.model (other) will be overwritten by spec.model (m)",),
    )
    yield Row("DGDR-U", request(model="n"), request())


def model_rows() -> Iterator[Row]:
    """M1 to M5, and what may not be changed."""
    yield Row("M1-M2", model())
    yield Row(
        "M1-M2",
        model(modelName="", baseModelName=""),
        refused="spec.baseModelName is required\nspec.modelName is required",
    )
    yield Row("M3", model(modelType="lora"), refused="spec.source is required when modelType is 'lora'")
    yield Row("M4", lora(""), refused="spec.source.uri must be specified when modelType is 'lora'")
    for uri in ("hf://org/x@rev", "s3://bucket/x", "file:///models/x"):
        yield Row("M5", lora(uri))
    yield Row("M5", lora("s3://"), warnings=("spec.source.uri: missing name or path after s3://",))
    for uri in ("https://x/y", "S3://x"):
        yield Row(
            "M5", lora(uri), refused=f"source URI must start with 's3://', 'hf://' or 'file://', got: {uri}"
        )
    yield Row("M-U", lora("s3://new"), lora("s3://old"))
    yield Row(
        "M-U",
        model(modelType="base"),
        lora("s3://x"),
        refused="spec.modelType is immutable and cannot be changed after creation",
        by_schema="spec.modelType is immutable and cannot be changed after creation",
        warnings=("Changing spec.modelType may cause unexpected behavior",),
    )
    yield Row(
        "M-U",
        model(baseModelName="c"),
        model(),
        refused="spec.baseModelName is immutable and cannot be changed after creation",
        by_schema="spec.baseModelName is immutable and cannot be changed after creation",
        warnings=("Changing spec.baseModelName will break endpoint discovery",),
    )


ROWS: tuple[Row, ...] = (
    *shared_rows(),
    *graph_rows(),
    *graph_update_rows(),
    *adapter_rows(),
    *component_rows(),
    *request_rows(),
    *model_rows(),
)
"""All rows."""
