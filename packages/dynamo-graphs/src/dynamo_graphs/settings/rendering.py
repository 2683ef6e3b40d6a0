"""Settings that change the rendered objects, and their values in an installation by the charts."""

from typing import Annotated, Literal

from dynamo_graphs.product import version
from dynamo_graphs.settings.declare import Section, Setting


class RenderSettings(Section, frozen=True, kw_only=True):
    """Settings that change the rendered objects."""

    nats_address: Annotated[
        str,
        Setting(
            "Set `NATS_SERVER` in every component to this address. Components without it send KV "
            "events over ZMQ.",
            ("natsAddr",),
        ),
    ] = ""
    etcd_address: Annotated[
        str,
        Setting("Set `ETCD_ENDPOINTS` in every component to this address.", ("etcdAddr",)),
    ] = ""
    model_express_url: Annotated[
        str,
        Setting(
            "Set `MODEL_EXPRESS_URL` in every component to this URL.",
            ("model-express-url",),
        ),
    ] = ""
    prometheus_endpoint: Annotated[
        str,
        Setting(
            "Set `PROMETHEUS_ENDPOINT` in every component to this URL.",
            ("prometheus-endpoint",),
        ),
    ] = ""
    discovery_backend: Annotated[
        Literal["kubernetes", "etcd"],
        Setting("Select how components discover each other.", ("discovery-backend",)),
    ] = "kubernetes"
    probe_profile: Annotated[
        Literal["http", "documented"],
        Setting(
            "Select the default probes: `http` needs nothing in the image; `documented` follows "
            "the API reference to the letter and needs curl and jq in the image.",
            ("probe-profile",),
        ),
    ] = "http"
    worker_liveness_failures: Annotated[
        int,
        Setting(
            "Set `failureThreshold` of the workers' default liveness probe, which runs every 5 "
            "s. Changing it rolls all workers without a liveness probe of their own.",
            ("worker-liveness-failures",),
        ),
    ] = 1
    worker_drain_period_seconds: Annotated[
        int,
        Setting(
            "Keep a terminating worker serving this long while frontends see it leave Kubernetes "
            "discovery: a `preStop` sleep for workers without a `preStop` of their own, capped "
            "at half their grace period. Requires Kubernetes 1.30; `0s` adds none. Running "
            "workers get it when their pods change for another reason.",
            ("worker-drain-period",),
        ),
    ] = 10
    mpi_secret_name: Annotated[
        str,
        Setting(
            "Name the Secret with the SSH keys of multinode TensorRT-LLM workers.",
            ("mpi-run-ssh-secret-name",),
        ),
    ] = ""
    mpi_secret_namespace: Annotated[
        str,
        Setting(
            "Copy the SSH Secret from this namespace when the operator does not generate the keys.",
            ("mpi-run-ssh-secret-namespace",),
        ),
    ] = ""
    mpi_secret_made: Annotated[
        bool,
        Setting(
            "Generate the SSH Secret with new keys in each namespace whose graphs need it. "
            "Otherwise the operator copies one Secret to all of them, and a reader of any copy "
            "can log in to such pods everywhere.",
            ("mpi-run-ssh-keygen",),
        ),
    ] = False
    grove_termination_delay_seconds: Annotated[
        int,
        Setting(
            "Set the time Grove waits before it terminates a gang that lost its quorum. 0 keeps "
            "Grove's default.",
            ("grove-termination-delay",),
        ),
    ] = 900
    virtual_service_gateway: Annotated[
        str,
        Setting(
            "Create VirtualServices with this Istio gateway. Empty creates none.",
            ("istio-virtual-service-gateway",),
        ),
    ] = ""
    ingress_class_name: Annotated[
        str,
        Setting(
            "Create an Ingress of this class for each frontend by default.",
            ("ingress-controller-class-name",),
        ),
    ] = ""
    ingress_tls_secret_name: Annotated[
        str,
        Setting(
            "Use this TLS Secret for Ingresses that name none.",
            ("ingress-controller-tls-secret-name",),
        ),
    ] = ""
    ingress_host_suffix: Annotated[
        str,
        Setting(
            "Use this domain for Ingresses without a host (default: `local`).",
            ("ingress-host-suffix",),
        ),
    ] = ""
    allowed_gateways: Annotated[
        str,
        Setting(
            "Allow graphs these other Istio gateways, comma-separated. `*` allows all but "
            "`mesh`, which routes traffic inside the mesh and must be listed by name.",
            ("istio-allowed-gateways",),
        ),
    ] = ""
    ingress_allowed_classes: Annotated[
        str,
        Setting(
            "Allow graphs these Ingress classes besides `--ingress-controller-class-name`, "
            "comma-separated. Empty allows any.",
            ("ingress-allowed-classes",),
        ),
    ] = ""
    ingress_allowed_host_suffixes: Annotated[
        str,
        Setting(
            "Allow Ingress and VirtualService hosts in these domains besides "
            "`--ingress-host-suffix`, comma-separated. Empty allows any outside the cluster "
            "domain.",
            ("ingress-allowed-host-suffixes",),
        ),
    ] = ""
    ingress_allowed_annotations: Annotated[
        str,
        Setting(
            "Allow these annotations on Ingresses and VirtualServices, comma-separated; an entry "
            "may end in `*`. Empty allows any. Annotations that pass configuration to a "
            "controller as text, such as `nginx.ingress.kubernetes.io/configuration-snippet`, "
            "must be listed in full.",
            ("ingress-allowed-annotations",),
        ),
    ] = ""
    cluster_domain: Annotated[
        str,
        Setting(
            "Set the cluster's DNS domain. Ingress and VirtualService hosts in it are refused.",
            ("cluster-domain",),
        ),
    ] = "cluster.local"
    planner_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to planners, one RoleBinding per namespace. Empty binds none.",
            ("planner-cluster-role-name",),
        ),
    ] = ""
    epp_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to endpoint pickers, one RoleBinding per namespace.",
            ("epp-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to profiling Jobs, one RoleBinding per namespace.",
            ("dgdr-profiling-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_nodes_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole, which reads nodes, through the ClusterRoleBinding of the "
            "same name to the ServiceAccounts of profiling Jobs with `enableGpuDiscovery`. Empty "
            "binds none.",
            ("dgdr-profiling-nodes-cluster-role-name",),
        ),
    ] = ""
    operator_image: Annotated[
        str,
        Setting(
            "Use this image, the operator's own, for the container that saves profiling results.",
            ("operator-image",),
        ),
    ] = ""
    profiling_copier_image: Annotated[
        str,
        Setting(
            "Use this image with a POSIX shell and kubectl for that container instead of the "
            "operator's.",
            ("profiling-copier-image",),
        ),
    ] = ""
    worker_rollout: Annotated[
        Literal["native", "managed"],
        Setting(
            "Select how workers of new graphs roll out: `native` by their Deployments, `managed` "
            "as revisions that discover only each other (requires Dynamo 1.0 or newer).",
            ("worker-rollout",),
        ),
    ] = "native"
    disruption_budget_max_unavailable: Annotated[
        str,
        Setting(
            "Limit concurrent evictions (a number or a percentage) of services with several "
            "replicas and no budget of their own. Empty sets no limit.",
            ("disruption-budget-max-unavailable",),
        ),
    ] = ""
    restricted_namespace: Annotated[
        str,
        Setting(
            "Watch only this namespace (default: the whole cluster).", ("restrictedNamespace",)
        ),
    ] = ""
    largest_object_bytes: Annotated[
        int,
        Setting(
            "Refuse objects of Dynamo kinds above this size: bytes of JSON without status and "
            "managed fields. Their running workloads stay as they are. A component may be one "
            "eighth larger than a graph. 0 sets no limit.",
            ("largest-object-bytes",),
        ),
    ] = 256 * 1024
    operator_account: Annotated[
        str,
        Setting(
            "Refuse graphs that run as this ServiceAccount, the operator's own, as "
            "`NAMESPACE/NAME` (default: from the API server at start, else from the operator's "
            "token).",
            ("operator-account",),
        ),
    ] = ""
    debugger_image: Annotated[
        str,
        Setting(
            "Use this image for the container that debug mode adds.",
            ("debugger-image",),
            environment="INTERNAL_IMAGES_DEBUGGER",
        ),
    ] = "python:3.12-slim"


def installed_settings() -> RenderSettings:
    """The settings of an operator that the charts installed into `dynamo-system` with their defaults."""
    name = "dynamo-platform-dynamo-operator"
    return RenderSettings(
        mpi_secret_name="mpi-run-ssh-secret",  # noqa: S106  a name
        mpi_secret_namespace="dynamo-system",  # noqa: S106  a name
        mpi_secret_made=True,
        grove_termination_delay_seconds=14_400,
        allowed_gateways="*",
        planner_cluster_role_name=f"{name}-planner",
        epp_cluster_role_name=f"{name}-epp",
        dgdr_profiling_cluster_role_name=f"{name}-dgdr-profiling",
        dgdr_profiling_nodes_cluster_role_name=f"{name}-dgdr-profiling-nodes",
        operator_image=f"dynamo-operator:{version()}",
        disruption_budget_max_unavailable="1",
        operator_account=f"dynamo-system/{name}-controller-manager",
    )
