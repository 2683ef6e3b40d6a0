"""The other kinds as Python objects: components, models, requests, scaling adapters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from dynamo_graphs.fields import ComponentFields, ProfilingConfig, RequestFields
from dynamo_graphs.graph import ApiObject
from dynamo_graphs.objects import Backend
from dynamo_graphs.rows import Rows
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Object

if TYPE_CHECKING:
    from dynamo_operator.settings import RenderSettings
    from dynamo_operator.shared.cluster import Facts


class Component(ApiObject):
    """A DynamoComponentDeployment: one component on its own. The operator creates those of graphs."""

    TYPE = DynamoComponentDeployment

    def __init__(
        self,
        name: str,
        *,
        namespace: str = "",
        backend_framework: Backend | None = None,
        **spec: Unpack[ComponentFields],
    ) -> None:
        """A component with these fields of its spec."""
        self._start(name, namespace, {**spec, "backend_framework": backend_framework})

    @property
    def typed(self) -> DynamoComponentDeployment:
        """The whole component as structs."""
        return self._typed(DynamoComponentDeployment)


class Model(ApiObject):
    """A DynamoModel: a model on the pods that serve its base model."""

    TYPE = DynamoModel

    def __init__(
        self,
        name: str,
        *,
        model_name: str,
        base_model_name: str,
        model_type: str = "base",
        uri: str = "",
        namespace: str = "",
    ) -> None:
        """A model. `uri` is where the weights of a LoRA are: `s3://…`, `hf://…` or `file:///…`."""
        spec: Object = {
            "model_name": model_name,
            "base_model_name": base_model_name,
            "model_type": model_type,
        }
        if uri:
            spec["source"] = {"uri": uri}
        self._start(name, namespace, spec)

    @classmethod
    def lora(cls, name: str, *, model: str, base: str, uri: str, namespace: str = "") -> "Model":
        """A LoRA that all workers of the base model load; requests ask for it as `model`."""
        return cls(
            name, model_name=model, base_model_name=base, model_type="lora", uri=uri, namespace=namespace
        )

    @property
    def typed(self) -> DynamoModel:
        """The whole model as structs."""
        return self._typed(DynamoModel)

    def _step_problems(self, document: Object) -> tuple[Problem, ...]:
        from dynamo_operator.models.validate import model_problems

        return super()._step_problems(document) or model_problems(
            self._made(document)._typed(DynamoModel)  # noqa: SLF001  of this class
        )

    def problems(
        self,
        settings: "RenderSettings | None" = None,  # noqa: ARG002  models do not depend on settings
        facts: "Facts | None" = None,  # noqa: ARG002  or facts
    ) -> Rows[Problem]:
        """Everything for which the operator would refuse it, by path; () if there is nothing."""
        return Rows(self._step_problems(self._document))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Targets for requests of this length: milliseconds to the first token, and between two tokens."""

    first_token_ms: float
    next_token_ms: float
    input_tokens: int
    output_tokens: int


class Request(ApiObject):
    """A DynamoGraphDeploymentRequest: asks the operator for a graph that meets latency targets."""

    TYPE = DynamoGraphDeploymentRequest

    def __init__(
        self,
        name: str,
        *,
        model: str,
        backend: Backend = "vllm",
        namespace: str = "",
        **spec: Unpack[RequestFields],
    ) -> None:
        """A request with these fields of its spec; `for_latency` takes the usual ones in a short form."""
        self._start(name, namespace, {"model": model, "backend": backend, **spec})

    @classmethod
    def for_latency(
        cls,
        name: str,
        *,
        model: str,
        profiler_image: str,
        latency: Latency,
        backend: Backend = "vllm",
        namespace: str = "",
        config: Mapping[str, object] | None = None,
        **spec: Unpack[RequestFields],
    ) -> "Request":
        """A request for a graph that meets this latency.

        `config` are further sections of the profiler's configuration, such as `hardware`.
        """
        sla = {
            "isl": latency.input_tokens,
            "osl": latency.output_tokens,
            "ttft": latency.first_token_ms,
            "itl": latency.next_token_ms,
        }
        profiling: ProfilingConfig = {
            "profiler_image": profiler_image,
            "config": {"sla": sla, **(config or {})},
        }
        spec["profiling_config"] = profiling
        return cls(name, model=model, backend=backend, namespace=namespace, **spec)

    @property
    def typed(self) -> DynamoGraphDeploymentRequest:
        """The whole request as structs."""
        return self._typed(DynamoGraphDeploymentRequest)

    def _step_problems(self, document: Object) -> tuple[Problem, ...]:
        from dynamo_graphs.offline import installed_settings
        from dynamo_operator.requests.validate import request_problems

        if problems := super()._step_problems(document):
            return problems
        return request_problems(self._made(document).typed, installed_settings())


class ScalingAdapter(ApiObject):
    """A DynamoGraphDeploymentScalingAdapter. The operator creates them; use this class to read one."""

    TYPE = DynamoGraphDeploymentScalingAdapter

    def __init__(self, name: str, *, graph: str, service: str, replicas: int, namespace: str = "") -> None:
        """The adapter of one service of a graph."""
        reference = {"name": graph, "service_name": service}
        self._start(name, namespace, {"replicas": replicas, "dgd_ref": reference})

    @property
    def typed(self) -> DynamoGraphDeploymentScalingAdapter:
        """The whole adapter as structs."""
        return self._typed(DynamoGraphDeploymentScalingAdapter)
