"""apiextensions.k8s.io/v1: CustomResourceDefinition."""

from typing import ClassVar

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class CustomResourceDefinition(Resource):
    """That there is a kind. Its name is `str` of the kind; its schemas, megabytes of them, stay away."""

    KIND = Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
    )
    METADATA_ONLY: ClassVar[bool] = True
