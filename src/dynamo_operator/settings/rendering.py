"""The settings that change what is rendered."""

from typing import Annotated, Literal

from dynamo_operator.settings.declare import Section, Setting


class RenderSettings(Section, frozen=True, kw_only=True):
    """The settings that change what we render. Source: specification `rendering` 1.1."""

    nats_address: Annotated[
        str,
        Setting("Address of NATS, given to every component as `NATS_SERVER`.", ("natsAddr",)),
    ] = ""
    etcd_address: Annotated[
        str,
        Setting("Address of etcd, given to every component as `ETCD_ENDPOINTS`.", ("etcdAddr",)),
    ] = ""
    model_express_url: Annotated[
        str,
        Setting(
            "URL of Model Express, given to every component as `MODEL_EXPRESS_URL`.",
            ("model-express-url",),
        ),
    ] = ""
    prometheus_endpoint: Annotated[
        str,
        Setting(
            "URL of Prometheus, given to every component as `PROMETHEUS_ENDPOINT`.",
            ("prometheus-endpoint",),
        ),
    ] = ""
    discovery_backend: Annotated[
        Literal["kubernetes", "etcd"],
        Setting("How components find each other.", ("discovery-backend",)),
    ] = "kubernetes"
    probe_profile: Annotated[
        Literal["http", "documented"],
        Setting(
            "Default probes: `http` needs nothing inside the image, `documented` follows the API "
            "reference to the letter and needs curl and jq there.",
            ("probe-profile",),
        ),
    ] = "http"
    worker_liveness_failures: Annotated[
        int,
        Setting(
            "How many checks in a row a worker has to miss before it is restarted, by its default "
            "liveness probe, which checks each 5 s. A change restarts all workers that have no probe "
            "of their own, in the way that each is updated.",
            ("worker-liveness-failures",),
        ),
    ] = 1
    worker_drain_period_seconds: Annotated[
        int,
        Setting(
            "How long a terminating worker keeps serving while frontends notice that it has left "
            "Kubernetes discovery: a `preStop` sleep in workers that have no `preStop` of their own, at most "
            "half of their grace period. Needs Kubernetes 1.30; 0s adds none. Workers that run get it when "
            "their pods change for another reason.",
            ("worker-drain-period",),
        ),
    ] = 10
    mpi_secret_name: Annotated[
        str,
        Setting(
            "Secret with the SSH keys that TensorRT-LLM workers of several nodes share.",
            ("mpi-run-ssh-secret-name",),
        ),
    ] = ""
    mpi_secret_namespace: Annotated[
        str,
        Setting(
            "Namespace of the Secret that is copied, where the keys are not made.",
            ("mpi-run-ssh-secret-namespace",),
        ),
    ] = ""
    mpi_secret_made: Annotated[
        bool,
        Setting(
            "Make that Secret, with new keys, in each namespace whose graphs need it. Otherwise the "
            "keys of the one Secret are copied to all of them, and whoever reads one copy may log in "
            "to such pods everywhere.",
            ("mpi-run-ssh-keygen",),
        ),
    ] = False
    grove_termination_delay_seconds: Annotated[
        int,
        Setting(
            "How long Grove waits before it ends a gang that lost its quorum. 0 leaves it to Grove.",
            ("grove-termination-delay",),
        ),
    ] = 900
    virtual_service_gateway: Annotated[
        str,
        Setting(
            "Istio gateway of VirtualServices. Without one, no VirtualService is made.",
            ("istio-virtual-service-gateway",),
        ),
    ] = ""
    ingress_class_name: Annotated[
        str,
        Setting(
            "Ingress class of frontends. With one, each frontend gets an Ingress by default.",
            ("ingress-controller-class-name",),
        ),
    ] = ""
    ingress_tls_secret_name: Annotated[
        str,
        Setting(
            "Secret with the certificate of Ingresses that name none.",
            ("ingress-controller-tls-secret-name",),
        ),
    ] = ""
    ingress_host_suffix: Annotated[
        str,
        Setting(
            "Domain of Ingresses that name no host. Empty means `local`.",
            ("ingress-host-suffix",),
        ),
    ] = ""
    allowed_gateways: Annotated[
        str,
        Setting(
            "Istio gateways that graphs may name beside that one, with commas. `*` stands for all but "
            "`mesh`, which routes traffic inside the mesh and must be listed by name.",
            ("istio-allowed-gateways",),
        ),
    ] = ""
    ingress_allowed_classes: Annotated[
        str,
        Setting(
            "Ingress classes that graphs may name beside `--ingress-controller-class-name`, with commas. "
            "Empty means any.",
            ("ingress-allowed-classes",),
        ),
    ] = ""
    ingress_allowed_host_suffixes: Annotated[
        str,
        Setting(
            "Domains in which the hosts of Ingresses and VirtualServices must be, beside "
            "`--ingress-host-suffix`, with commas. Empty means any outside the cluster's own domain.",
            ("ingress-allowed-host-suffixes",),
        ),
    ] = ""
    ingress_allowed_annotations: Annotated[
        str,
        Setting(
            "Annotations that graphs may set on their Ingress or VirtualService, with commas; an entry may "
            "end in `*`. Empty means any. Annotations that pass configuration to a controller as text, "
            "such as `nginx.ingress.kubernetes.io/configuration-snippet`, must be listed in full.",
            ("ingress-allowed-annotations",),
        ),
    ] = ""
    cluster_domain: Annotated[
        str,
        Setting(
            "Domain of the cluster's DNS, in which no Ingress or VirtualService may have its host.",
            ("cluster-domain",),
        ),
    ] = "cluster.local"
    planner_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to planners, one RoleBinding per namespace. Empty binds none.",
            ("planner-cluster-role-name",),
        ),
    ] = ""
    epp_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to endpoint pickers, one RoleBinding per namespace.",
            ("epp-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to profiling Jobs, one RoleBinding per namespace.",
            ("dgdr-profiling-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_nodes_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole that reads nodes, and ClusterRoleBinding of the same name in which the accounts "
            "of profiling Jobs with `enableGpuDiscovery` are listed. Empty lists none.",
            ("dgdr-profiling-nodes-cluster-role-name",),
        ),
    ] = ""
    operator_image: Annotated[
        str,
        Setting(
            "The operator's own image, for the container that saves what profiling finds.",
            ("operator-image",),
        ),
    ] = ""
    profiling_copier_image: Annotated[
        str,
        Setting(
            "Image with a POSIX shell and kubectl that takes the place of the operator's own in that "
            "container.",
            ("profiling-copier-image",),
        ),
    ] = ""
    worker_rollout: Annotated[
        Literal["native", "managed"],
        Setting(
            "How workers of new graphs are replaced: `native` by their Deployments, `managed` as "
            "generations that find only each other, which needs Dynamo 1.0 or newer.",
            ("worker-rollout",),
        ),
    ] = "native"
    disruption_budget_max_unavailable: Annotated[
        str,
        Setting(
            "Pods that an eviction may take at a time, a number or a percentage, from services with "
            "several replicas that say nothing themselves. Empty means no limit.",
            ("disruption-budget-max-unavailable",),
        ),
    ] = ""
    restricted_namespace: Annotated[
        str,
        Setting(
            "Work in this namespace only. Empty means the whole cluster.", ("restrictedNamespace",)
        ),
    ] = ""
    largest_object_bytes: Annotated[
        int,
        Setting(
            "Size in bytes, as JSON and without status and managed fields, above which an object of a "
            "Dynamo kind is refused and not processed; what runs for it stays as it is. A component may have "
            "an eighth more than a graph. 0 means no limit.",
            ("largest-object-bytes",),
        ),
    ] = 256 * 1024
    operator_account: Annotated[
        str,
        Setting(
            "The operator's own account, as `NAMESPACE/NAME`, which no graph may run as. Empty means: "
            "the API server is asked at start, and if it does not say, the operator's own token.",
            ("operator-account",),
        ),
    ] = ""
    debugger_image: Annotated[
        str,
        Setting(
            "Image of the container that debug mode adds.",
            ("debugger-image",),
            environment="INTERNAL_IMAGES_DEBUGGER",
        ),
    ] = "python:3.12-slim"
