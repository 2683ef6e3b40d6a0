"""A container as a local process: started, restarted, probed and ended."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import pytest

from devcluster.kubelet.containers import Container, launched
from devcluster.kubelet.environment import MissingReference
from devcluster.kubelet.programs import Program
from devcluster.kubelet.status import ContainerState
from kube_runtime.types.meta import Object

SLEEPS = "import time; time.sleep(60)"
IGNORES_SIGTERM = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
)
PASSES = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1, "timeoutSeconds": 5}
FAILS = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1}


class Kubelet:
    """What a container reports."""

    def __init__(self, folder: Path) -> None:
        self.events: list[str] = []
        self._folder = folder
        self._changed = asyncio.Event()

    def container(
        self,
        code: str,
        spec: Object | None = None,
        *,
        policy: str = "Always",
        environment: Callable[[], Coroutine[None, None, Mapping[str, str]]] | None = None,
    ) -> Container:
        async def nothing() -> Mapping[str, str]:
            return {"GREETING": "hello"}

        def record(_: str, reason: str, message: str) -> None:
            self.events.append(f"{reason}: {message}")

        return Container(
            {"name": "main", **(spec or {})},
            state=ContainerState("main", "image"),
            policy=policy,
            address="127.0.0.1",
            grace_seconds=1,
            logs=self._folder,
            program=Program((sys.executable, "-I", "-S", "-c", code), "note"),
            environment=environment or nothing,
            changed=self._changed.set,
            record=record,
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                await self._changed.wait()
                self._changed.clear()


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.05)


def content(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(test)


def test_its_environment_is_what_it_was_given_and_its_log_has_times(tmp_path: Path) -> None:
    async def test() -> None:
        container = Kubelet(tmp_path).container("import os; print(dict(os.environ))", policy="Never")
        await container.run()
        assert container.state.exit_code == 0
        first, second, *_ = container.log().read_text().splitlines()
        assert first.partition("Z ")[2] == "playground: note"
        assert "'GREETING': 'hello'" in second
        assert "HOME" not in second

    run(test())


def test_it_is_restarted_at_once_and_then_after_a_pause(tmp_path: Path) -> None:
    async def test() -> None:
        kubelet = Kubelet(tmp_path)
        container = kubelet.container("import sys; print('boom'); sys.exit(3)")
        running = asyncio.create_task(container.run())
        await kubelet.until(
            lambda: container.state.state.get("waiting", {}).get("reason") == "CrashLoopBackOff"
        )
        assert container.state.restarts == 1
        assert container.state.last["terminated"]["exitCode"] == 3
        assert "boom" in container.log().read_text()
        assert "boom" in container.log(previous=True).read_text()
        await ended(running)

    run(test())


def test_it_is_ready_when_its_probes_pass(tmp_path: Path) -> None:
    async def test() -> None:
        kubelet = Kubelet(tmp_path)
        container = kubelet.container(SLEEPS, {"startupProbe": PASSES, "readinessProbe": PASSES})
        running = asyncio.create_task(container.run())
        await kubelet.until(lambda: container.state.is_ready)
        assert container.state.is_started
        await container.end(5)
        await running

    run(test())


@pytest.mark.parametrize("kind", ["startup", "liveness"])
def test_it_is_restarted_when_a_probe_fails(tmp_path: Path, kind: str) -> None:
    async def test() -> None:
        kubelet = Kubelet(tmp_path)
        container = kubelet.container(SLEEPS, {f"{kind}Probe": FAILS})
        running = asyncio.create_task(container.run())
        await kubelet.until(lambda: container.state.restarts == 1)
        assert container.state.last["terminated"]["exitCode"] == 143
        assert f"Killing: Container main failed {kind} probe, will be restarted" in kubelet.events
        await ended(running)

    run(test())


def test_it_is_killed_at_the_end_of_its_grace_period_and_not_restarted(tmp_path: Path) -> None:
    async def test() -> None:
        kubelet = Kubelet(tmp_path)
        container = kubelet.container(IGNORES_SIGTERM)
        running = asyncio.create_task(container.run())
        await kubelet.until(lambda: "running" in container.state.state)
        await eventually(lambda: "up" in content(container.log()))
        await container.end(0.5)
        await running
        assert container.state.exit_code == 137

    run(test())


def test_a_missing_secret_is_shown_until_it_is_there(tmp_path: Path) -> None:
    async def test() -> None:
        kubelet = Kubelet(tmp_path)

        async def missing() -> Mapping[str, str]:
            raise MissingReference('secret "token" not found')

        container = kubelet.container(SLEEPS, environment=missing)
        running = asyncio.create_task(container.run())
        reason = "CreateContainerConfigError"
        await kubelet.until(lambda: container.state.state["waiting"]["reason"] == reason)
        await asyncio.sleep(0)
        assert kubelet.events == ['Failed: Error: secret "token" not found']
        await ended(running)

    run(test())


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """The starter is killed, so that it cannot end anything itself."""
    started = tmp_path / "pid"
    code = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    child = launched((sys.executable, "-I", "-S", "-c", code))
    launcher = child[: child.index(str(os.getpid()))]
    command = child[len(launcher) + 1 :]
    starter = (
        "import os, subprocess, time; "
        f"subprocess.Popen([*{launcher!r}, str(os.getpid()), *{command!r}]); time.sleep(60)"
    )

    async def test() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", "-c", starter)
        await eventually(lambda: content(started) != "")
        process.kill()
        await process.wait()
        child = Path("/proc", content(started))
        await eventually(lambda: not child.exists())

    run(test())
