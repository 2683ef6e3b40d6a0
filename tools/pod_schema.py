"""Write `kube_runtime/schemas/kubernetes.json`: the Kubernetes types that we write or that our kinds embed.

The source is the OpenAPI document of a live API server, so these are the schemas that the server applies to
pods. The tool replaces what a structural schema must not contain: references under `allOf`, zero defaults
that are only documentation, and `oneOf` for values of two types.

    python tools/pod_schema.py [--kubeconfig FILE] [--check]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Object = dict[str, Any]

DOCUMENTS = (
    "/openapi/v3/api/v1",
    "/openapi/v3/apis/apps/v1",
    "/openapi/v3/apis/autoscaling/v2",
    "/openapi/v3/apis/batch/v1",
    "/openapi/v3/apis/networking.k8s.io/v1",
    "/openapi/v3/apis/policy/v1",
    "/openapi/v3/apis/rbac.authorization.k8s.io/v1",
)
TARGET = Path(__file__).parents[1] / "packages/kube-runtime/src/kube_runtime/schemas/kubernetes.json"

ROOTS = (
    "ConfigMapKeySelector",
    "Container",
    "DeploymentSpec",
    "EnvVar",
    "HorizontalPodAutoscalerBehavior",
    "IngressSpec",
    "JobSpec",
    "MetricSpec",
    "ObjectMeta",
    "PodDisruptionBudgetSpec",
    "PodSpec",
    "PolicyRule",
    "Probe",
    "ResourceClaim",
    "ResourceRequirements",
    "RoleRef",
    "ServiceSpec",
    "Subject",
    "Toleration",
)
"""The types that our kinds embed by name, or that our objects consist of; referenced types are added."""

KEPT = ("type", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
"""Keywords that are copied. Descriptions are omitted, because `kubectl explain pod.spec` has them; enums too,
because a newer API server may allow more values, and validates them in the workload."""

SPECIAL: dict[str, Object] = {
    "IntOrString": {"x-kubernetes-int-or-string": True},
    "Quantity": {"quantity": True},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
}
EMBEDDED_METADATA: Object = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
"""Metadata of an embedded template. A bare `type: object` would make the API server drop labels."""


def definitions(documents: Iterable[Object]) -> Object:
    """The embedded types by short name, as structural schemas with references by short name."""
    source: Object = {}
    for document in documents:
        for name, schema in document["components"]["schemas"].items():
            source.setdefault(short(name), schema)
    schemas: Object = {}
    pending: list[str] = [*ROOTS]
    while pending:
        name = pending.pop()
        if name not in schemas:
            schemas[name] = SPECIAL.get(name) or structural(source[name])
            pending.extend(references(schemas[name]))
    return dict(sorted(schemas.items()))


def structural(schema: Object) -> Object:
    """One type or field without descriptions; a reference is its only keyword."""
    if reference := schema.get("$ref") or next((one["$ref"] for one in schema.get("allOf", ())), None):
        return {"$ref": short(reference)}
    result = {keyword: schema[keyword] for keyword in KEPT if keyword in schema}
    if properties := schema.get("properties"):
        required = sorted(schema.get("required", ()))
        result["properties"] = {
            name: field(name, value, is_required=name in required)
            for name, value in sorted(properties.items())
        }
        if required:
            result["required"] = required
    elif isinstance(values := schema.get("additionalProperties"), dict):
        result["additionalProperties"] = structural(values)
    elif result.get("type") == "object":
        result["x-kubernetes-preserve-unknown-fields"] = True
    if items := schema.get("items"):
        result["items"] = structural(items)
    return result


def field(name: str, schema: Object, *, is_required: bool) -> Object:
    """One property. The default of a required field is only the zero of its type, and is omitted."""
    result = structural(schema)
    if name == "metadata" and result == {"$ref": "ObjectMeta"}:
        return EMBEDDED_METADATA
    if not is_required and "default" in schema and "$ref" not in result:
        result["default"] = schema["default"]
    return result


def short(name: str) -> str:
    """`Container` for `#/components/schemas/io.k8s.api.core.v1.Container`."""
    return name.rpartition(".")[2]


def references(schema: Any) -> Iterator[str]:
    """The short names that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(name := schema.get("$ref"), str):
            yield name
        for value in schema.values():
            yield from references(value)


def text(documents: Iterable[Object]) -> str:
    """The content of the file."""
    return json.dumps(definitions(documents), indent=1) + "\n"


def fetch(path: str, kubeconfig: str | None) -> Object:
    """A JSON document of the API server, through `kubectl`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    kubectl = shutil.which("kubectl", path=f"{assets}{os.pathsep}{os.environ.get('PATH', '')}")
    if kubectl is None:
        sys.exit("kubectl not found; put it on PATH or set KUBEBUILDER_ASSETS")
    flags = ["--kubeconfig", kubeconfig] if kubeconfig else []
    answer = subprocess.run(  # noqa: S603 - the program was looked up above
        [kubectl, *flags, "get", "--raw", path], check=True, capture_output=True
    )
    document: Object = json.loads(answer.stdout)
    return document


def main() -> None:
    """Rewrite the file, or with --check report whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it differs")
    options = parser.parse_args()
    content = text([fetch(path, options.kubeconfig) for path in DOCUMENTS])
    if options.check:
        sys.exit(TARGET.read_text() != content and f"{TARGET} is out of date")
    TARGET.write_text(content)
    print(f"wrote {TARGET} ({len(content):,} bytes)")


if __name__ == "__main__":
    main()
