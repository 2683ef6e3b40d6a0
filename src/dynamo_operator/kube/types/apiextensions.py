"""apiextensions.k8s.io/v1: CustomResourceDefinition."""

from typing import ClassVar

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource


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
