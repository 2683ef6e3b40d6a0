"""The built-in kinds that are read or written, with only the fields that are used."""

from typing import ClassVar

import msgspec

from kube_runtime.types.meta import Condition, Kind, Metadata, Object, Resource, Struct


class TargetReference(Struct):
    """The object behind an endpoint, usually a pod."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(Struct):
    """Conditions of an endpoint; None is unknown. By the API's contract an unknown `ready` counts as true."""

    ready: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(Struct):
    """One endpoint of a slice."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(Resource):
    """Some of the endpoints of a Service, with the labels of the Service, and one with its name."""

    KIND = Kind("discovery.k8s.io", "v1", "EndpointSlice")

    endpoints: tuple[SliceEndpoint, ...] | None = None


class UserInfo(Struct):
    """A user."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class ReviewStatus(Struct):
    """The result of a review: of a token, of the own user, or of a permission."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    user_info: UserInfo = UserInfo()
    allowed: bool = False


class TokenReview(Resource):
    """Asks for the user of a token. The API server returns the token, which is not decoded."""

    KIND = Kind("authentication.k8s.io", "v1", "TokenReview", namespaced=False)

    status: ReviewStatus = ReviewStatus()


class SelfSubjectReview(Resource):
    """Asks for the user of the request itself."""

    KIND = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", namespaced=False)

    status: ReviewStatus = ReviewStatus()


class SubjectAccessReview(Resource):
    """Asks whether a user may do something."""

    KIND = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", namespaced=False)

    status: ReviewStatus = ReviewStatus()


def question(kind: Kind, spec: Object) -> Object:
    """The review to create."""
    return kind.manifest({"name": ""}, spec=spec)


def subject(user: UserInfo) -> Object:
    """The user in the spec of a SubjectAccessReview."""
    return {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}


class Role(Resource):
    """A Role, with its rules as JSON text."""

    KIND = Kind("rbac.authorization.k8s.io", "v1", "Role")

    rules: msgspec.Raw = msgspec.Raw(b"null")


class RoleBinding(Resource):
    """A RoleBinding, with its role and subjects as JSON text."""

    KIND = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding")

    role_ref: msgspec.Raw = msgspec.Raw(b"null")
    subjects: msgspec.Raw = msgspec.Raw(b"null")


class Subject(Struct):
    """One subject of a binding."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class ClusterRoleBinding(Resource):
    """A ClusterRoleBinding, with its subjects."""

    KIND = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", namespaced=False)

    subjects: tuple[Subject, ...] = ()


class Ingress(Resource):
    """An Ingress; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ServiceAccount(Resource):
    """A ServiceAccount, with its metadata only."""

    KIND = Kind("", "v1", "ServiceAccount")


class Service(Resource):
    """A Service; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("", "v1", "Service")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ConfigMap(Resource):
    """A ConfigMap; its data stays JSON text for the comparison with the desired state."""

    KIND = Kind("", "v1", "ConfigMap")

    data: msgspec.Raw = msgspec.Raw(b"{}")


class PersistentVolumeClaim(Resource):
    """The metadata of a PersistentVolumeClaim."""

    KIND = Kind("", "v1", "PersistentVolumeClaim")
    METADATA_ONLY: ClassVar[bool] = True


class Event(Resource):
    """A Kubernetes Event; written, never read."""

    KIND = Kind("", "v1", "Event")

    count: int = 1


class Waiting(Struct):
    """Why a container waits to start."""

    reason: str = ""
    message: str = ""


class Terminated(Struct):
    """How a container ended. `finished_at` is RFC 3339 in UTC."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class ContainerState(Struct):
    """The state of a container. Without either, it runs, or its state is unknown."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct):
    """The observed state of a container. `started`: its startup probe succeeded."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodSpec(Struct):
    """The node of a pod; "" before it is scheduled."""

    node_name: str = ""


class PodIP(Struct):
    """One of the addresses of a pod."""

    ip: str = ""


class PodStatus(Struct):
    """The observed state of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())


class Pod(Resource):
    """A pod, with the fields that explain why it is not ready."""

    KIND = Kind("", "v1", "Pod")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeStatus(Struct):
    """The resources of a node for pods."""

    allocatable: dict[str, str] = {}


class Node(Resource):
    """A node; labels describe its GPUs."""

    KIND = Kind("", "v1", "Node", namespaced=False)

    status: NodeStatus = NodeStatus()


class JobStatus(Struct):
    """The observed state of a Job. It has ended with the condition `Complete` or `Failed`."""

    conditions: tuple[Condition, ...] = ()
    completion_time: str | None = None


class Job(Resource):
    """A Job. It is created once and never changed, so its spec is not decoded."""

    KIND = Kind("batch", "v1", "Job")

    status: JobStatus = JobStatus()


class WebhookService(Struct):
    """The Service in front of a webhook."""

    namespace: str
    name: str


class WebhookClient(Struct):
    """How the API server calls a webhook, and the CAs that it trusts, as PEM in base64."""

    service: WebhookService | None = None
    url: str = ""
    ca_bundle: str = ""


class Webhook(Struct):
    """One webhook of a configuration."""

    name: str
    client_config: WebhookClient = WebhookClient()


class ValidatingWebhookConfiguration(Resource):
    """The validating webhooks for requests before they are stored."""

    KIND = Kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", namespaced=False)

    webhooks: tuple[Webhook, ...] = ()


class PodDisruptionBudget(Resource):
    """A PodDisruptionBudget; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("policy", "v1", "PodDisruptionBudget")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class DeploymentSpec(Struct):
    """The fields of the spec on which readiness depends."""

    replicas: int = 1
    paused: bool = False


class DeploymentStatus(Struct):
    """The observed state of a Deployment."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Resource):
    """A Deployment; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("apps", "v1", "Deployment")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: DeploymentStatus = DeploymentStatus()


class PodTemplate(Struct):
    """The metadata of a pod template."""

    metadata: Metadata = Metadata()


class StatefulSetSpec(Struct):
    """The pod template of a StatefulSet."""

    template: PodTemplate = PodTemplate()


class StatefulSetStatus(Struct):
    """The observed state of a StatefulSet."""

    observed_generation: int = 0
    updated_replicas: int = 0


class StatefulSet(Resource):
    """A StatefulSet, read only."""

    KIND = Kind("apps", "v1", "StatefulSet")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class ControllerRevision(Resource):
    """The metadata of a ControllerRevision; its `data` is written once and not read."""

    KIND = Kind("apps", "v1", "ControllerRevision")
    METADATA_ONLY: ClassVar[bool] = True


class LeaseSpec(Struct):
    """The holder of a Lease. Times are RFC 3339 in UTC, with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(Resource):
    """A Lease, for leader election and the ownership of namespaces."""

    KIND = Kind("coordination.k8s.io", "v1", "Lease")

    spec: LeaseSpec = LeaseSpec()


class CustomResourceDefinition(Resource):
    """The metadata of a CRD, whose name is `str` of its kind. Its schemas may have megabytes."""

    KIND = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", namespaced=False)
    METADATA_ONLY: ClassVar[bool] = True


class DefinedVersion(Struct):
    """A version of a kind: whether it is served, and whether objects are stored in it."""

    name: str = ""
    served: bool = False
    storage: bool = False


class DefinedNames(Struct):
    """The names of a kind."""

    kind: str = ""
    plural: str = ""


class DefinitionSpec(Struct):
    """A kind and its versions."""

    versions: tuple[DefinedVersion, ...] = ()
    group: str = ""
    names: DefinedNames = DefinedNames()


class DefinitionStatus(Struct):
    """The versions in which objects may still be stored."""

    stored_versions: tuple[str, ...] = ()


class Definition(Resource):
    """A CRD with its versions, without its schemas."""

    KIND = CustomResourceDefinition.KIND

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    @property
    def stored(self) -> str:
        """The version in which objects are stored from now on."""
        return next((version.name for version in self.spec.versions if version.storage), "")

    @property
    def former(self) -> tuple[str, ...]:
        """The other versions in which there may be objects."""
        return tuple(version for version in self.status.stored_versions if version != self.stored)
