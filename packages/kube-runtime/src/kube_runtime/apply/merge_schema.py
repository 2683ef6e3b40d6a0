"""How the API server merges a value in an apply: field by field, item by item, or as a whole.

The schema of a field decides. For the Kubernetes types that we write, the schemas come from the API server's
OpenAPI document (`tools/pod_schema.py`). For custom resources there are no schemas here; the name of a field
determines its type.
"""

from dataclasses import dataclass

from kube_runtime.crd.embedded import definitions
from kube_runtime.kind import Object


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """The schema of one value, {} if unknown, and the name of its type, "" if it has none."""

    schema: Object
    type: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the schema is known."""
        return bool(self.schema)

    @property
    def is_quantity(self) -> bool:
        """Whether the value is a quantity, which may be written in several ways."""
        return self.schema.get("quantity") is True

    @property
    def is_whole(self) -> bool:
        """Whether the value is atomic: it belongs to one manager as a whole."""
        kind = self.schema.get("x-kubernetes-map-type")
        is_list = self.schema.get("type") == "array"
        return kind == "atomic" or (is_list and not self.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """The merge keys of the items of a list; empty if it has none."""
        return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))

    @property
    def items(self) -> "FieldSchema":
        """The schema of an item of this list."""
        return _field(self.schema.get("items", {}))

    def child(self, name: str) -> "FieldSchema":
        """The schema of the field of that name."""
        properties = self.schema.get("properties", {})
        values = self.schema.get("additionalProperties")
        return _field(properties.get(name) or values or _EMBEDDED.get(name, {}))

    def default(self, name: str) -> object:
        """The default that the API server writes into an absent field; None if there is none."""
        written = _DEFAULTS_BY_FIELD.get((self.type, name))
        return written or self.schema.get("properties", {}).get(name, {}).get("default")


def field_of(body: Object) -> FieldSchema:
    """The schema of an object, by its kind."""
    properties = _KINDS.get((body.get("apiVersion"), body.get("kind")), {})
    return FieldSchema({"properties": {"metadata": _METADATA, **properties}})


def type_field(name: str) -> FieldSchema:
    """The schema of the Kubernetes type of that name, such as `PodTemplateSpec`."""
    return _field({"$ref": name})


def is_omitted_when_zero(name: str) -> bool:
    """Whether zero and absence mean the same for a known field of this name."""
    return name in _OMITTED_WHEN_ZERO


def identity(item: Object, keys: tuple[str, ...]) -> tuple[object, ...]:
    """The values of the merge keys of an item of a list."""
    if len(keys) == 1 and keys[0] not in _DEFAULTS:  # most lists, and they may be long
        return (item.get(keys[0]),)
    return tuple(item.get(key, _DEFAULTS.get(key)) for key in keys)


def _field(schema: Object) -> FieldSchema:
    name = schema.get("$ref", "")
    return FieldSchema(definitions()[name], name) if name else FieldSchema(schema)


def _list_of(name: str) -> Object:
    return {"type": "array", "items": {"$ref": name}}


_DEFAULTS = {"protocol": "TCP"}
_STRINGS: Object = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Object = {
    "type": "object",
    "properties": {
        "annotations": _STRINGS,
        "labels": _STRINGS,
        "ownerReferences": {"type": "array", "x-kubernetes-list-map-keys": ["uid"]},
    },
}
_KINDS: dict[tuple[object, object], dict[str, Object]] = {
    ("apps/v1", "Deployment"): {"spec": {"$ref": "DeploymentSpec"}},
    ("v1", "ConfigMap"): {"data": _STRINGS},
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
_DEFAULTS_BY_FIELD: dict[tuple[str, str], object] = {
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
"""Defaults by type and field that the OpenAPI document lacks: of pod templates and of atomic values.

Source: the `SetDefaults` functions of Kubernetes v1.36. If one is missing here, two pod templates count as
different, or an object is written once more.
"""

_OMITTED_WHEN_ZERO = frozenset(
    # Source: fields of k8s.io/api that are not pointers and have `omitempty`, and whose default is zero.
    (
        *("hostIPC", "hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "readOnly"),
        *("stdin", "stdinOnce", "tty", "hostPort", "initialDelaySeconds", "minReadySeconds"),
        *("host", "hostIP", "hostname", "medium", "nodeName", "prefix", "priorityClassName"),
        *("subPath", "subPathExpr", "subdomain", "value", "workingDir", "effect", "key"),
        *("operator", "service", "apiGroup"),
    )
)
