"""The base of images that are built here: a small Debian with Python, made by Debian's own tool.

It takes the place of `python:*-slim`, which lives in a registry.
"""

import hashlib
import json
import os
import subprocess

from devcluster.folders import cache_folder
from devcluster.locks import held
from devcluster.machine import PATH
from devcluster.oci import Layer, existing_layer
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError

BASE = "localhost/debian-python:12"
"""What such a base is called in FROM; see `--build-arg BASE`."""

_SUITE = "bookworm"
_PACKAGES = ("ca-certificates", "curl", "libgomp1", "python3", "python3-venv")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_MOMENT = "315532800"  # of all files, so that the same packages make the same bytes


def base_layer(progress: ProgressReporter) -> Layer:
    """The layer, made if it is not there yet. It has the packages of the day on which it was made.

    Raises: ConfigError if it cannot be made.
    """
    options = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(_PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        _SUITE,
    ]
    named = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:16]
    folder = cache_folder() / "images"
    file = folder / f"base-{named}.tar"
    with held(
        folder / "base.lock",
        waiting=lambda: progress.step("waiting for another process that makes the base of images"),
    ):
        if not file.exists():
            progress.step("making the base of images from Debian packages")
            partial = file.with_suffix(".partial.tar")
            environment = {**os.environ, "PATH": PATH, "SOURCE_DATE_EPOCH": _MOMENT}
            done = subprocess.run(  # noqa: S603 - Debian's tool
                [*options, str(partial)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                partial.unlink(missing_ok=True)
                raise ConfigError("mmdebstrap", done.stderr.strip().splitlines()[-1])
            partial.rename(file)
    return existing_layer(file)
