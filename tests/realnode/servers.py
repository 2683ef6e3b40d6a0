"""A registry and a BuildKit daemon, for tests of image builds; their programs are built on first use.

The first build of BuildKit takes minutes. Both run on this machine, or with the prefix `entering` on a real
node.
"""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster.processes import ProcessError
from devcluster.programs import Pinned, build
from devcluster.progress import SILENT, ProgressReporter
from devcluster.startup import READY_SECONDS
from realnode.machine import PATH

HERE = Path(__file__).parent
REGISTRY = Pinned(HERE / "gomodule-registry", "the image registry", "github.com/distribution/distribution/v3")
BUILDKIT = Pinned(HERE / "gomodule-buildkit", "BuildKit", "github.com/moby/buildkit")
"""The programs `buildkitd` and `buildctl`."""

USER, PASSWORD = "builder", "word"
_HASHED = "$2b$04$SSSzGydKCxGJOhvNLwg00.kQeLT7IhDxXSaVpPiScZpJQcOyUS3kq"
_STOP_SECONDS = 20.0
_PAUSE_SECONDS = 0.1


@contextmanager
def registry(
    address: str, folder: Path, *, entering: Sequence[str] = (), progress: ProgressReporter = SILENT
) -> Iterator[None]:
    """Run a registry at this address, without TLS, with the login `USER` and `PASSWORD`.

    Raises: ConfigError if it cannot be built; ProcessError if it does not start.
    """
    program = build(progress, REGISTRY) / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    users = folder / "users"
    users.write_text(f"{USER}:{_HASHED}\n")
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "tests", "path": str(users)}},
    }
    file = folder / "registry.yaml"
    file.write_text(json.dumps(settings))
    with server_running([*entering, program, "serve", file], folder / "registry.log", "listening on"):
        yield


@contextmanager
def build_daemon(
    address: str,
    folder: Path,
    *,
    entering: Sequence[str] = (),
    registries: Sequence[str] = (),
    progress: ProgressReporter = SILENT,
) -> Iterator[None]:
    """Run BuildKit's daemon at this address, with plain HTTP for `registries`. Needs root and runc.

    Raises: ConfigError if it cannot be built; ProcessError if it does not start.
    """
    program = build(progress, BUILDKIT) / "buildkitd"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "buildkitd.toml"
    file.write_text("".join(f'[registry."{host}"]\nhttp = true\n' for host in registries))
    arguments = [
        f"--addr=tcp://{address}",
        f"--config={file}",
        f"--root={folder / 'data'}",
        "--containerd-worker=false",
        "--oci-worker-snapshotter=overlayfs",
    ]
    with server_running([*entering, program, *arguments], folder / "buildkitd.log", "running server"):
        yield


@contextmanager
def server_running(command: Sequence[str | Path], log: Path, ready: str) -> Iterator[None]:
    """Run a server program from when it prints `ready` until the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # a program that we built
            command, env={"PATH": PATH}, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while ready not in (text := log.read_text(errors="replace")):
            if process.poll() is not None:
                raise ProcessError(f"{log.stem} ended: {text[-2000:]}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{log.stem}: not ready after {READY_SECONDS} s; log: {log}")
            time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
