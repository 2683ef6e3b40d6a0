"""How finely the API server merges a value: field by field, item by item, or as a whole.

Server-side apply decides by the schema of a field whether others may add to what we wrote there. For the
Kubernetes types that we write, the schemas come from the API server itself (`tools/pod_schema.py`). Of
custom resources we do not have the schemas: there, the name of a field determines its type.
"""

from dataclasses import dataclass

from kube_runtime.crd.embedded import definitions
from kube_runtime.kind import Object


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """What is known of one value: its schema, {} if nothing, and the name of its type, "" if it has none."""

    schema: Object
    type: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the API server's own schema contains this."""
        return bool(self.schema)

    @property
    def is_quantity(self) -> bool:
        """Whether the value is an amount that may be written in several ways."""
        return self.schema.get("quantity") is True

    @property
    def is_whole(self) -> bool:
        """Whether the value belongs to one manager as a whole."""
        kind = self.schema.get("x-kubernetes-map-type")
        is_list = self.schema.get("type") == "array"
        return kind == "atomic" or (is_list and not self.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that identify the items of a list. Empty means: the list has no such keys."""
        return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))

    @property
    def items(self) -> "FieldSchema":
        """An item of this list."""
        return _field(self.schema.get("items", {}))

    def child(self, name: str) -> "FieldSchema":
        """The field of that name in this map."""
        properties = self.schema.get("properties", {})
        values = self.schema.get("additionalProperties")
        return _field(properties.get(name) or values or _EMBEDDED.get(name, {}))

    def default(self, name: str) -> object:
        """What the API server writes into that field when it is left out. None means: nothing."""
        written = _WRITTEN.get((self.type, name))
        return written or self.schema.get("properties", {}).get(name, {}).get("default")


def field_of(body: Object) -> FieldSchema:
    """An object as a whole, by its kind."""
    properties = _KINDS.get((body.get("apiVersion"), body.get("kind")), {})
    return FieldSchema({"properties": {"metadata": _METADATA, **properties}})


def type_field(name: str) -> FieldSchema:
    """What is known of a value of the Kubernetes type of that name, such as `PodTemplateSpec`."""
    return _field({"$ref": name})


def is_left_out_when_zero(name: str) -> bool:
    """Whether a known field of this name means the same when it is zero and when it is absent."""
    return name in _LEFT_OUT


def identity(item: Object, keys: tuple[str, ...]) -> tuple[object, ...]:
    """What identifies an item of a list."""
    if len(keys) == 1 and keys[0] not in _DEFAULTS:  # most lists, and they may be long
        return (item.get(keys[0]),)
    return tuple(item.get(key, _DEFAULTS.get(key)) for key in keys)


def _field(schema: Object) -> FieldSchema:
    name = schema.get("$ref", "")
    return FieldSchema(definitions()[name], name) if name else FieldSchema(schema)


def _list_of(name: str) -> Object:
    return {"type": "array", "items": {"$ref": name}}


_DEFAULTS = {"protocol": "TCP"}
_TEXTS: Object = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Object = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "labels": _TEXTS,
        "ownerReferences": {"type": "array", "x-kubernetes-list-map-keys": ["uid"]},
    },
}
_KINDS: dict[tuple[object, object], dict[str, Object]] = {
    ("apps/v1", "Deployment"): {"spec": {"$ref": "DeploymentSpec"}},
    ("v1", "ConfigMap"): {"data": _TEXTS},
    ("v1", "Service"): {"spec": {"$ref": "ServiceSpec"}},
    ("networking.k8s.io/v1", "Ingress"): {"spec": {"$ref": "IngressSpec"}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"$ref": "PodDisruptionBudgetSpec"}},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": _list_of("PolicyRule")},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {
        "roleRef": {"$ref": "RoleRef"},
        "subjects": _list_of("Subject"),
    },
}
_EMBEDDED: dict[str, Object] = {
    "envs": _list_of("EnvVar"),
    "extraPodSpec": {"$ref": "PodSpec"},
    "leaderTemplate": {"$ref": "PodTemplateSpec"},
    "livenessProbe": {"$ref": "Probe"},
    "mainContainer": {"$ref": "Container"},
    "podSpec": {"$ref": "PodSpec"},
    "readinessProbe": {"$ref": "Probe"},
    "workerTemplate": {"$ref": "PodTemplateSpec"},
}
"""Fields of custom resources that hold a Kubernetes type."""

_DEFAULT_MODE = 0o644
_WRITTEN: dict[tuple[str, str], object] = {
    ("ConfigMapVolumeSource", "defaultMode"): _DEFAULT_MODE,
    ("Container", "terminationMessagePath"): "/dev/termination-log",
    ("Container", "terminationMessagePolicy"): "File",
    ("DownwardAPIVolumeSource", "defaultMode"): _DEFAULT_MODE,
    ("HTTPGetAction", "path"): "/",
    ("HTTPGetAction", "scheme"): "HTTP",
    ("ObjectFieldSelector", "apiVersion"): "v1",
    ("PodCertificateProjection", "maxExpirationSeconds"): 86400,
    ("PodSpec", "dnsPolicy"): "ClusterFirst",
    ("PodSpec", "restartPolicy"): "Always",
    ("PodSpec", "schedulerName"): "default-scheduler",
    ("PodSpec", "terminationGracePeriodSeconds"): 30,
    ("Probe", "failureThreshold"): 3,
    ("Probe", "periodSeconds"): 10,
    ("Probe", "successThreshold"): 1,
    ("Probe", "timeoutSeconds"): 1,
    ("ProjectedVolumeSource", "defaultMode"): _DEFAULT_MODE,
    ("ResourceFieldSelector", "divisor"): "0",
    ("RoleRef", "apiGroup"): "rbac.authorization.k8s.io",
    ("SecretVolumeSource", "defaultMode"): _DEFAULT_MODE,
    ("ServiceAccountTokenProjection", "expirationSeconds"): 3600,
    ("Subject", "apiGroup"): "rbac.authorization.k8s.io",
}
"""What the API server writes into a field that is left out, by type and field, where its OpenAPI document
has no default: in pod templates, and in values that belong to us as a whole.

Source: the `SetDefaults` functions of Kubernetes v1.36. A default that is missing here costs nothing but that
two pod templates count as different, or that an object is written once more.
"""

_LEFT_OUT = frozenset(
    # Source: fields of k8s.io/api that are not pointers and have `omitempty`, and whose default is zero.
    (
        *("hostIPC", "hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "readOnly"),
        *("stdin", "stdinOnce", "tty", "hostPort", "initialDelaySeconds", "minReadySeconds"),
        *("host", "hostIP", "hostname", "medium", "nodeName", "prefix", "priorityClassName"),
        *("subPath", "subPathExpr", "subdomain", "value", "workingDir", "effect", "key"),
        *("operator", "service", "apiGroup"),
    )
)
