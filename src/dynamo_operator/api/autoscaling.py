"""The `autoscaling` field of old graphs: still accepted, never looked at."""

from typing import Annotated

from dynamo_operator.api.declare import Field
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Struct


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
