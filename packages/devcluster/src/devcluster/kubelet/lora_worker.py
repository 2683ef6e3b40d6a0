"""A worker of the real runtime that takes LoRAs, which the mocker does not: `lora_worker.py FOLDER MODEL`.

It runs with the Python of the runtime, which serves `/v1/loras` and hands the calls to the endpoints of this
worker. Answers are random words, with a LoRA too.

Source: the handlers of `dynamo.vllm` in ai-dynamo 1.6.1.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop  # type: ignore[import-not-found,unused-ignore]
from dynamo.common.utils.runtime import create_runtime  # type: ignore[import-not-found]
from dynamo.llm import (  # type: ignore[import-not-found]
    ModelInput,
    ModelRuntimeConfig,
    ModelType,
    WorkerType,
    lora_name_to_id,
    register_model,
    unregister_model,
)

_TOKEN_SECONDS = 0.006
_MOST_TOKENS = 1024
_FIRST_TOKEN = 1000

Answer = AsyncIterator[dict[str, Any]]


class Worker:
    """One worker: its model, and the LoRAs that it has loaded."""

    def __init__(self, endpoint: Any, folder: Path, model: str) -> None:
        self._endpoint = endpoint
        self._folder = folder
        self._model = model
        self._loras: dict[str, int] = {}
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._tokens = range(_FIRST_TOKEN, settings["vocab_size"])

    async def publish(self, lora: str = "") -> None:
        """Let frontends discover the model, or a LoRA of it."""
        config = ModelRuntimeConfig()
        config.enable_local_indexer = False
        folder = str(self._folder)
        as_lora = {"lora_name": lora, "base_model_path": folder} if lora else {"model_name": self._model}
        await register_model(
            ModelInput.Tokens,
            ModelType.Chat | ModelType.Completions,
            self._endpoint,
            folder,
            worker_type=WorkerType.Aggregated,
            runtime_config=config,
            ignore_weights=True,
            **as_lora,
        )

    async def generate(self, request: Any) -> Answer:
        """Random tokens, until one ends the answer or the limit of the request."""
        conditions = request.get("stop_conditions") or {}
        limit = conditions.get("max_tokens") or _MOST_TOKENS
        for number in range(limit):
            await asyncio.sleep(_TOKEN_SECONDS)
            token = random.choice(self._tokens)  # noqa: S311 - no secret
            reason = {"finish_reason": "length"} if number + 1 == limit else {}
            yield {"token_ids": [token], **reason}

    async def load(self, request: Any = None) -> Answer:
        """Load a LoRA: remember its name, and publish it."""
        name = request["lora_name"]
        if name not in self._loras:
            await self.publish(name)
            self._loras[name] = lora_name_to_id(name)
        yield {"status": "success", "lora_name": name, "lora_id": self._loras[name]}

    async def unload(self, request: Any = None) -> Answer:
        """Unload a LoRA; one that is not loaded is an error."""
        name = request["lora_name"]
        if name not in self._loras:
            yield {"status": "error", "message": f"LoRA adapter '{name}' not found"}
            return
        await unregister_model(self._endpoint, lora_name=name)
        del self._loras[name]
        yield {"status": "success", "lora_name": name}

    async def list_(self, _: Any = None) -> Answer:
        """The loaded LoRAs."""
        yield {"status": "success", "loras": self._loras, "count": len(self._loras)}


async def main() -> None:
    """Serve until SIGTERM."""
    folder, model = Path(sys.argv[1]), sys.argv[2]
    environ = os.environ
    runtime, loop = create_runtime(
        environ.get("DYN_DISCOVERY_BACKEND", "kubernetes"),
        environ.get("DYN_REQUEST_PLANE", "tcp"),
        environ.get("DYN_EVENT_PLANE", "zmq"),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, runtime.shutdown)
    prefix = f"{environ.get('DYN_NAMESPACE', 'dynamo')}.backend"
    endpoint = runtime.endpoint(f"{prefix}.generate")
    worker = Worker(endpoint, folder, model)
    await worker.publish()
    calls = {"load_lora": worker.load, "unload_lora": worker.unload, "list_loras": worker.list_}
    await asyncio.gather(
        endpoint.serve_endpoint(worker.generate, graceful_shutdown=True),
        *(runtime.endpoint(f"{prefix}.{name}").serve_endpoint(call) for name, call in calls.items()),
    )


if __name__ == "__main__":
    uvloop.run(main())
