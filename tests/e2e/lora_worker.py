"""A worker without an engine that has the adapter API, on the real runtime: it runs in a pod.

The runtime itself serves `/v1/loras` on the system port, and hands each call to an endpoint of its own
process: `load_lora`, `unload_lora` and `list_loras`. Those of this worker keep names and nothing else.

Source: the handlers of `dynamo.vllm` in ai-dynamo 0.9.0.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import uvloop  # type: ignore[import-not-found,unused-ignore]
from dynamo.runtime import dynamo_worker  # type: ignore[import-not-found]

loaded: dict[str, str] = {}


async def generate(_: Any) -> AsyncIterator[dict[str, Any]]:
    """The endpoint whose readiness is the worker's."""
    yield {"token_ids": [], "finish_reason": "stop"}


async def load(request: Any = None) -> AsyncIterator[dict[str, Any]]:
    """Keeps a name; one that is there already is a success."""
    name = request["lora_name"]
    loaded.setdefault(name, request["source"]["uri"])
    yield {"status": "success", "lora_name": name, "lora_id": sorted(loaded).index(name) + 1}


async def unload(request: Any = None) -> AsyncIterator[dict[str, Any]]:
    """Forgets a name; one that is not there is an error."""
    name = request["lora_name"]
    if loaded.pop(name, None) is None:
        yield {"status": "error", "message": f"LoRA adapter '{name}' not found"}
    else:
        yield {"status": "success", "lora_name": name}


async def names(_: Any = None) -> AsyncIterator[dict[str, Any]]:
    """Says what is loaded."""
    found = {name: number for number, name in enumerate(sorted(loaded), 1)}
    yield {"status": "success", "loras": found, "count": len(found)}


@dynamo_worker()  # type: ignore[untyped-decorator,unused-ignore]
async def main(runtime: Any) -> None:
    component = runtime.namespace(os.environ["DYN_NAMESPACE"]).component("backend")
    endpoints = {"generate": generate, "load_lora": load, "unload_lora": unload, "list_loras": names}
    await asyncio.gather(
        *(component.endpoint(name).serve_endpoint(function) for name, function in endpoints.items())
    )


if __name__ == "__main__":
    uvloop.run(main())  # the decorator gives it the runtime
