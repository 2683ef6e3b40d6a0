"""Detect drift: whether a live object still contains what we applied.

The API server fills in defaults and other managers add fields of their own, so the live object is not equal
to the desired one but contains it. Atomic values, such as a Service's selector or a Role's rules, must not
be extended by others; only defaults of the API server may be added there.
"""

from dataclasses import dataclass
from typing import Any

from kube_runtime.crd import definitions
from kube_runtime.types.meta import Object, is_same_amount


# The schema of a field decides how it is compared. For the Kubernetes types that we write, the
# schemas come from the API server's OpenAPI document (`tools/pod_schema.py`). For custom resources
# there are no schemas here; the name of a field determines its type.
@dataclass(frozen=True, slots=True)
class FieldSchema:
    """The schema of one value, {} if unknown, and the name of its type, "" if it has none."""

    schema: Object
    type: str = ""

    def is_same_amount(self, ours: object, theirs: object) -> bool:
        """Whether this is a quantity, and two spellings mean the same."""
        return self.schema.get("quantity") is True and is_same_amount(ours, theirs)

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


_EMPTY: tuple[object, ...] = (None, {}, [])


def is_same_template(left: Object, right: Object, *, by_amount: bool) -> bool:
    """Whether two pod templates are equal, apart from defaults of the API server and empty fields.

    `by_amount`: two spellings of one quantity are equal. Not so in a custom resource, which keeps the text,
    so that its controller may see a change.
    """

    def same(ours: object, theirs: object, field: FieldSchema) -> bool:
        if ours in _EMPTY and theirs in _EMPTY:
            return True
        if isinstance(ours, dict) and isinstance(theirs, dict):
            return all(
                same(_filled(name, ours, field), _filled(name, theirs, field), field.child(name))
                for name in ours.keys() | theirs.keys()
            )
        if isinstance(ours, list) and isinstance(theirs, list):
            pairs = zip(ours, theirs, strict=False)
            return len(ours) == len(theirs) and all(same(*pair, field.items) for pair in pairs)
        if type(ours) is type(theirs) and ours == theirs:
            return True
        return by_amount and field.is_same_amount(ours, theirs)

    return same(left, right, type_field("PodTemplateSpec"))


def _filled(name: str, parent: Object, field: FieldSchema) -> object:
    value = parent.get(name)
    if value not in _EMPTY and (value or not field.schema or name not in _OMITTED_WHEN_ZERO):
        return value
    match field.type, name:
        case "Container", "imagePullPolicy":
            image = str(parent.get("image", "")).rpartition("/")[2]
            is_latest = "@" not in image and image.partition(":")[2] in ("", "latest")
            return "Always" if is_latest else "IfNotPresent"
        case "PodSpec", "serviceAccount":  # the old name of the same field
            return parent.get("serviceAccountName")
    return field.default(name)


def has_no_drift(desired: Object, live: Object) -> bool:
    """Whether `live` contains all of `desired`. Both come from `content` or `content_of`."""
    return _holds(desired, live, field_of(desired), is_whole=False)


def template_has_no_drift(desired: Object, live: Object) -> bool:
    """Whether a live pod template contains all of the desired one."""
    return _holds(desired, live, type_field("PodTemplateSpec"), is_whole=False)


def _holds(desired: object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    """Whether a value contains the desired one. `is_whole`: it is part of an atomic value."""
    is_whole = is_whole or field.is_whole
    if isinstance(desired, dict):
        return _map_holds(desired, live, field, is_whole=is_whole)
    if isinstance(desired, list | tuple):
        return _list_holds(list(desired), live, field, is_whole=is_whole)
    if desired == live and type(desired) is type(live):
        return True
    if live is None:  # a field of a custom resource, whose schema is not known
        return not desired and not field.schema
    return field.is_same_amount(desired, live)


def _map_holds(desired: Object, live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, dict):
        return not desired and not live
    if is_whole and any(
        name not in desired and value not in (*_EMPTY, field.default(name)) for name, value in live.items()
    ):
        return False
    for name, value in desired.items():
        theirs = live.get(name)
        if type(value) is str and value == theirs:
            continue  # most values are text; comparing it costs less than looking up its schema
        if theirs is None and field.schema:
            # The API server drops what is empty, and zero where that is the default: not every `false`.
            if value not in _EMPTY and (value or name not in _OMITTED_WHEN_ZERO):
                return False
        elif not _holds(value, theirs, field.child(name), is_whole=is_whole):
            return False
    return True


def _list_holds(desired: list[Any], live: object, field: FieldSchema, *, is_whole: bool) -> bool:
    if not isinstance(live, list):
        return not desired and not live
    items, keys = field.items, field.keys
    if not keys or is_whole or not all(isinstance(item, dict) for item in (*desired, *live)):
        pairs = zip(desired, live, strict=False)
        return len(desired) == len(live) and all(_holds(*pair, items, is_whole=is_whole) for pair in pairs)
    by_identity = {identity(item, keys): item for item in live}
    ours = [identity(item, keys) for item in desired]
    wanted = set(ours)
    return [key for key in by_identity if key in wanted] == ours and all(
        _map_holds(item, by_identity[key], items, is_whole=items.is_whole)
        for item, key in zip(desired, ours, strict=True)
    )


def without_emptied(desired: Object, live: Object) -> Object:
    """`desired` without the maps that are empty in it and not empty in `live`.

    An apply removes the fields that we applied before and no longer apply. If a map has no other fields, the
    API server makes it null instead of the `{}` that we apply, and the schema of a custom resource refuses
    null (measured on v1.36). So the first apply omits the map, which removes it, and the second one sets it.
    """
    body: Object = _without(desired, live, field_of(desired))
    return body


def _without(desired: object, live: object, field: FieldSchema) -> Any:
    if isinstance(desired, dict) and isinstance(live, dict):
        return {
            name: _without(value, live.get(name), field.child(name))
            if isinstance(value, dict | list)  # the schema of a field is expensive to look up
            else value
            for name, value in desired.items()
            if not (value == {} and isinstance(live.get(name), dict) and live[name])
        }
    keys = field.keys
    if not keys or not isinstance(desired, list) or not isinstance(live, list):
        return desired
    items = field.items
    theirs = {identity(item, keys): item for item in live if isinstance(item, dict)}
    return [
        _without(item, theirs.get(identity(item, keys)), items) if isinstance(item, dict) else item
        for item in desired
    ]
