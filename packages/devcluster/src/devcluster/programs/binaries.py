"""Find each program of the control plane: KUBEBUILDER_ASSETS, the user's cache, a download, a build.

KUBEBUILDER_ASSETS is envtest's convention. Its folders have etcd, kube-apiserver and kubectl only, so each
program is searched for separately.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from devcluster.programs import prebuilt
from devcluster.programs.build import PROGRAMS, build, built_folder
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError

Binaries = Mapping[str, Path]
"""The programs of `build.PROGRAMS` by name."""

_VARIABLE = "KUBEBUILDER_ASSETS"


def find(progress: ProgressReporter) -> Binaries:
    """All programs by name, downloaded or built if need be.

    Raises: ConfigError if KUBEBUILDER_ASSETS is not a folder, or the build is impossible.
    """
    binaries = from_assets()
    if missing := [name for name in PROGRAMS if name not in binaries]:
        folder = None if built_folder().is_dir() else prebuilt.fetch(missing, progress)
        folder = folder or build(progress)
        binaries |= {name: folder / name for name in missing}
    return binaries


def from_assets() -> dict[str, Path]:
    """The programs in the folder KUBEBUILDER_ASSETS."""
    setting = os.environ.get(_VARIABLE)
    if not setting:
        return {}
    folder = Path(setting).absolute()
    if not folder.is_dir():
        raise ConfigError(_VARIABLE, f"{folder} is not a folder")
    return {name: folder / name for name in PROGRAMS if os.access(folder / name, os.X_OK)}
