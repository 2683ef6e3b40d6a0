"""apiextensions.k8s.io/v1: CustomResourceDefinition."""

from typing import ClassVar

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class CustomResourceDefinition(Resource):
    """The metadata of a CRD, whose name is `str` of its kind. Its schemas may have megabytes."""

    KIND = Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
    )
    METADATA_ONLY: ClassVar[bool] = True
