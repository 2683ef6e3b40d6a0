"""What conversion looks at in the types of Kubernetes: pod specs, containers and what is in them."""

from dynamo_operator.versions.shapes import (
    ANYTHING,
    KEPT_FLAG,
    KEPT_INTEGER,
    KEPT_TEXT,
    QUANTITY,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Fields,
    ListOf,
    MapOf,
    Struct,
)


def _open(fields: Fields) -> Struct:
    return Struct(fields, is_open=True)


def open_pointer(fields: Fields) -> Struct:
    """An object with these fields and others, whose presence counts also when it is empty."""
    return Struct(fields, keeps_zero=True, is_open=True)


OBJECTS = ListOf(_open({}))

SECRET = open_pointer({"name": TEXT})
ENVS = ListOf(_open({"name": TEXT, "value": KEPT_TEXT}))
ENV_FROM = ListOf(_open({"prefix": TEXT, "secretRef": SECRET}))
MOUNTS = ListOf(
    _open({"name": TEXT, "mountPath": TEXT, "readOnly": KEPT_FLAG, "subPath": TEXT, "subPathExpr": TEXT})
)
HEADERS = ListOf(_open({"value": KEPT_TEXT}))
PROBE = open_pointer(
    {
        "exec": open_pointer({"command": TEXTS}),
        "httpGet": open_pointer({"path": TEXT, "host": TEXT, "scheme": TEXT, "httpHeaders": HEADERS}),
        "initialDelaySeconds": KEPT_INTEGER,
        "timeoutSeconds": KEPT_INTEGER,
        "periodSeconds": KEPT_INTEGER,
        "successThreshold": KEPT_INTEGER,
        "failureThreshold": KEPT_INTEGER,
    }
)
QUANTITIES = MapOf(QUANTITY)
RESOURCES = _open({"requests": QUANTITIES, "limits": QUANTITIES, "claims": OBJECTS})

CONTAINER_FIELDS: Fields = {
    "name": TEXT,
    "image": TEXT,
    "command": TEXTS,
    "args": TEXTS,
    "workingDir": TEXT,
    "ports": OBJECTS,
    "env": ENVS,
    "envFrom": ENV_FROM,
    "resources": RESOURCES,
    "volumeMounts": MOUNTS,
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "startupProbe": PROBE,
    "terminationMessagePath": TEXT,
    "terminationMessagePolicy": TEXT,
    "imagePullPolicy": TEXT,
    "stdin": KEPT_FLAG,
    "stdinOnce": KEPT_FLAG,
    "tty": KEPT_FLAG,
}
CONTAINERS = ListOf(_open(CONTAINER_FIELDS))
POD_SPEC: Fields = {
    "containers": CONTAINERS,
    "initContainers": CONTAINERS,
    "ephemeralContainers": CONTAINERS,
    "volumes": OBJECTS,
    "imagePullSecrets": OBJECTS,
    "tolerations": OBJECTS,
    "nodeSelector": TEXT_MAP,
    "overhead": QUANTITIES,
    "hostNetwork": KEPT_FLAG,
    "hostPID": KEPT_FLAG,
    "hostIPC": KEPT_FLAG,
    "runtimeClassName": KEPT_TEXT,
    "preemptionPolicy": KEPT_TEXT,
    "hostnameOverride": KEPT_TEXT,
}
POD_TEMPLATE = Struct(
    {
        "metadata": _open({"name": TEXT, "labels": TEXT_MAP, "annotations": TEXT_MAP, "finalizers": TEXTS}),
        "spec": Struct(POD_SPEC, is_open=True),
    },
    keeps_zero=True,
)
METADATA = _open(
    {"name": TEXT, "namespace": TEXT, "labels": TEXT_MAP, "annotations": TEXT_MAP, "managedFields": ANYTHING}
)
