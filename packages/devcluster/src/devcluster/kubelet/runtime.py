"""The Dynamo runtime that stands for the containers of graphs, installed into the user's cache.

It is a wheel of 75 MB with its frontend and its simulated engine. Where it cannot be had, a small simulation
of our own takes its place.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.kubelet import model
from devcluster.kubelet.programs import Runtime
from devcluster.layout import cache_folder, held
from devcluster.processes import last_line
from devcluster.progress import ProgressReporter
from kube_runtime.errors import OperatorError

REQUIREMENTS = Path(__file__).with_name("runtime.txt")
SWITCH = "DYNAMO_PLAYGROUND_RUNTIME"
"""Environment variable: `off` uses the simulation even where the runtime could be installed."""
BROKER = Path(__file__).with_name("broker.py")
SOCKETS = (Path("run", "events-in.sock"), Path("run", "events-out.sock"))
"""Where the broker of events listens, below the folder of an instance."""
_SILENCE_SECONDS = 20


class InstallationError(OperatorError):
    """The runtime cannot be installed on this machine."""


def version() -> str:
    """The pinned version."""
    pin = re.search(r"^ai-dynamo==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    return pin[1] if pin else ""


def installed(instance: Path) -> Runtime | None:
    """The runtime for pods of an instance, if it is installed; writes the model that it simulates."""
    python = _folder() / "bin" / "python"
    if os.environ.get(SWITCH) == "off" or not python.exists():
        return None
    folder = instance / "model"
    if not folder.exists():
        partial = instance / "model.partial"
        model.write(partial)
        partial.rename(folder)
    received, sent = SOCKETS
    return Runtime(python, version(), folder, f"xsub=ipc://{received},xpub=ipc://{sent}")


def install(progress: ProgressReporter) -> None:
    """Install the runtime unless it is. Raises: InstallationError."""
    if os.environ.get(SWITCH) == "off":
        raise InstallationError(f"{SWITCH}=off")
    folder = _folder()
    with held(folder.with_suffix(".lock"), progress, "another process that installs the Dynamo runtime"):
        if folder.exists():
            return
        progress.step(f"installing the Dynamo runtime {version()} into the cache (85 MB)")
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _run(sys.executable, "-m", "venv", str(partial))
            _run(
                *(str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"),
                *("--disable-pip-version-check", "--only-binary=:all:", "--no-deps", "--require-hashes"),
                *("--retries=1", f"--timeout={_SILENCE_SECONDS}", "--requirement", str(REQUIREMENTS)),
            )
            partial.rename(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            output = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
            raise InstallationError(last_line(output or "", "pip failed")) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _folder() -> Path:
    """A virtual environment for these requirements and this Python."""
    identity = f"{sys.version}\0{sys.base_prefix}\0{REQUIREMENTS.read_text(encoding='utf-8')}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return cache_folder().with_name("runtime") / digest


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - Python and pip
