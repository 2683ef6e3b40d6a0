"""The `autoscaling` field of old graphs: still accepted, and ignored."""

from typing import Annotated

from kube_runtime.crd.declare import Field
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct


class Autoscaling(Struct):
    """Deprecated and ignored; use `scalingAdapter` with an autoscaler of your choice."""

    enabled: Annotated[bool | None, Field("Deprecated and ignored.")] = None
    min_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    max_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    behavior: Annotated[
        Object | None, Field("Deprecated and ignored.", embeds="HorizontalPodAutoscalerBehavior")
    ] = None
    metrics: Annotated[
        tuple[Object, ...], Field("Deprecated and ignored.", embeds="MetricSpec")
    ] = ()
