"""The rules of the fields of a request that only v1beta1 has. They read it as it was written."""

from collections.abc import Iterator

from dynamo_operator.component.validate_pod import has_version
from dynamo_operator.shared.inert import inside
from dynamo_operator.shared.problems import Problem, shown
from kube_runtime.types.meta import Object


def written_request_problems(document: Object) -> Iterator[Problem]:
    """Problems of a request in v1beta1."""
    spec = document.get("spec") or {}
    yield from search_problems(spec.get("searchStrategy"), spec.get("backend", "auto"))


def search_problems(strategy: str | None, backend: str) -> Iterator[Problem]:
    """Problems of a search for a backend that the profiler chooses."""
    if strategy == "thorough" and backend == "auto":
        message = (
            'is incompatible with spec.backend "auto"; set spec.backend to a specific backend (sglang, '
            "trtllm, or vllm)"
        )
        yield Problem("spec.searchStrategy", message)


def written_request_warnings(document: Object) -> Iterator[Problem]:
    """Warn of an image whose version no tag says."""
    spec = document.get("spec") or {}
    image = inside(spec, "image")
    if image and not has_version(image) and not spec.get("runtimeVersionOverride"):
        message = f"is required by operators of Dynamo 1.x: the tag of image {shown(image)} is not a version"
        yield Problem("spec.runtimeVersionOverride", message)
