"""A small simulation of Dynamo's frontend and workers, where the runtime cannot be installed.

`simulation.py frontend` and `simulation.py worker MODEL` have the paths, health answers and metrics that
probes, `dynamoctl` and dashboards use. Workers are found by files in a folder; no request reaches them.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiohttp import web

_ANSWER = (
    "This answer is simulated: no model runs in the playground, and the Dynamo runtime is not installed."
)
_TOKEN_SECONDS = 0.01
_DEFAULT_TOKENS = 64
_BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Metrics:
    """Counters and histograms of the frontend, in the text format of Prometheus."""

    def __init__(self) -> None:
        self.requests: dict[str, int] = {}
        self.in_flight = 0
        self._values: dict[str, list[float]] = {}

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram."""
        self._values.setdefault(name, []).append(value)

    def text(self) -> str:
        """All metrics."""
        lines = ["# TYPE dynamo_frontend_requests_total counter"]
        for model, count in self.requests.items():
            labels = f'model="{model}",endpoint="chat_completions",request_type="stream",status="success"'
            lines.append(f"dynamo_frontend_requests_total{{{labels}}} {count}")
        lines += ["# TYPE dynamo_frontend_inflight_requests gauge"]
        lines += [f"dynamo_frontend_inflight_requests {self.in_flight}"]
        for name, values in self._values.items():
            lines.append(f"# TYPE dynamo_frontend_{name} histogram")
            for limit in (*_BUCKETS, float("inf")):
                count, bound = (
                    sum(value <= limit for value in values),
                    "+Inf" if limit > _BUCKETS[-1] else limit,
                )
                lines.append(f'dynamo_frontend_{name}_bucket{{le="{bound}"}} {count}')
            lines.append(f"dynamo_frontend_{name}_sum {sum(values)}")
            lines.append(f"dynamo_frontend_{name}_count {len(values)}")
        return "\n".join((*lines, ""))


def workers_folder() -> Path:
    """Where workers of this graph leave the name of their model."""
    return Path("run", "workers", os.environ.get("DYN_NAMESPACE", "dynamo").replace("/", "_"))


def models() -> list[str]:
    """The models that workers of this graph serve."""
    files = sorted(workers_folder().glob("*.json"))
    return sorted({name for file in files for name in json.loads(file.read_text(encoding="utf-8"))})


def frontend(metrics: Metrics) -> web.Application:
    """The application of a frontend."""

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "healthy", "simulated": True})

    async def listed(_: web.Request) -> web.Response:
        entries = [{"id": name, "object": "model", "owned_by": "simulation"} for name in models()]
        return web.json_response({"object": "list", "data": entries})

    async def chat(request: web.Request) -> web.StreamResponse:
        begun = time.monotonic()
        body = await request.json()
        model = str(body.get("model", ""))
        if model not in models():
            error = {"message": f"Model not found: {model}", "type": "not_found", "code": 404}
            return web.json_response(error, status=404)
        asked = " ".join(str(message.get("content", "")) for message in body.get("messages", ()))
        words = _ANSWER.split()[: int(body.get("max_tokens") or _DEFAULT_TOKENS)]
        usage = {"prompt_tokens": len(asked.split()), "completion_tokens": len(words)}
        usage["total_tokens"] = sum(usage.values())
        metrics.in_flight += 1
        try:
            response = await _answered(request, body, model, words, usage)
        finally:
            metrics.in_flight -= 1
        metrics.requests[model] = metrics.requests.get(model, 0) + 1
        metrics.observe("time_to_first_token_seconds", _TOKEN_SECONDS)
        metrics.observe("inter_token_latency_seconds", _TOKEN_SECONDS)
        metrics.observe("input_sequence_tokens", usage["prompt_tokens"])
        metrics.observe("output_sequence_tokens", usage["completion_tokens"])
        metrics.observe("request_duration_seconds", time.monotonic() - begun)
        return response

    async def shown(_: web.Request) -> web.Response:
        return web.Response(text=metrics.text())

    app = web.Application()
    for path in ("/health", "/live"):
        app.router.add_get(path, health)
    app.router.add_get("/v1/models", listed)
    app.router.add_get("/metrics", shown)
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def _answered(
    request: web.Request, body: dict[str, object], model: str, words: Sequence[str], usage: dict[str, int]
) -> web.StreamResponse:
    head = {"id": f"simulated-{time.monotonic_ns()}", "created": int(time.time()), "model": model}

    async def pieces() -> AsyncIterator[str]:
        for number, word in enumerate(words):
            await asyncio.sleep(_TOKEN_SECONDS)
            yield f" {word}" if number else word

    if not body.get("stream"):
        text = "".join([piece async for piece in pieces()])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    head["object"] = "chat.completion.chunk"

    async def send(choices: list[object], **more: object) -> None:
        chunk = json.dumps(head | {"choices": choices} | more)
        await response.write(f"data: {chunk}\n\n".encode())

    async for piece in pieces():
        await send([{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}])
    await send([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    await send([], usage=usage)
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def worker(model: str) -> web.Application:
    """The application of a worker's system port."""
    begun, loras = time.monotonic(), dict[str, str]()
    folder = workers_folder()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{os.environ.get('HOSTNAME', 'worker')}.json"

    def publish() -> None:
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps([model, *loras]), encoding="utf-8")
        partial.rename(file)

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ready", "endpoints": {"generate": "ready"}, "simulated": True})

    async def metrics(_: web.Request) -> web.Response:
        seconds = time.monotonic() - begun
        return web.Response(text=f'dynamo_component_uptime_seconds{{model="{model}"}} {seconds:.3f}\n')

    async def listed(_: web.Request) -> web.Response:
        return web.json_response({"status": "success", "loras": dict.fromkeys(loras, 1), "count": len(loras)})

    async def load(request: web.Request) -> web.Response:
        body = await request.json()
        loras[body["lora_name"]] = body["source"]["uri"]
        publish()
        return web.json_response({"status": "success", "lora_name": body["lora_name"]})

    async def unload(request: web.Request) -> web.Response:
        loras.pop(request.match_info["name"], None)
        publish()
        return web.json_response({"status": "success"})

    async def leave(_: web.Application) -> None:
        file.unlink(missing_ok=True)

    publish()
    app = web.Application()
    for path in ("/health", "/live"):
        app.router.add_get(path, health)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/v1/loras", listed)
    app.router.add_post("/v1/loras", load)
    app.router.add_delete("/v1/loras/{name:.+}", unload)
    app.on_shutdown.append(leave)
    return app


async def _serve(app: web.Application, host: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(app, shutdown_timeout=30)
    await runner.setup()
    await asyncio.shield(web.TCPSite(runner, host, port).start())
    sys.stdout.write(f"listening at {host}:{port}\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


def main() -> None:
    """Run a frontend or a worker until SIGTERM."""
    part, *rest = sys.argv[1:]
    environ = os.environ
    if part == "frontend":
        host, port = environ.get("DYN_HTTP_HOST", "127.0.0.1"), environ.get("DYN_HTTP_PORT", "8000")
        app = frontend(Metrics())
    else:
        host, port = environ.get("DYN_SYSTEM_HOST", "127.0.0.1"), environ.get("DYN_SYSTEM_PORT", "9090")
        app = worker(rest[0])
    asyncio.run(_serve(app, host, int(port)))


if __name__ == "__main__":
    main()
