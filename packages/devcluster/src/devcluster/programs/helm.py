"""Helm, for work on the charts: built from its pinned module on first use.

Its release uses the same Kubernetes libraries as the control plane, so that a machine which has built that
has compiled half of this. Helm keeps its state in a home folder, which each caller chooses.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from devcluster.processes import completed
from devcluster.programs.build import Pinned, build
from devcluster.progress import SILENT, ProgressReporter

HELM = Pinned("gomodule-helm", "Helm", "helm.sh/helm/v4")


class HelmError(Exception):
    """Helm failed; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm with its own home folder; `kubeconfig` is None for commands that need no cluster."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run Helm and return what it prints.

        Raises: HelmError.
        """
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            "KUBECONFIG": str(self.kubeconfig or os.devnull),
        }
        done = completed([self.program, *arguments], environment, stdin=stdin)
        if done.returncode:
            raise HelmError(done.stderr.strip() or done.stdout.strip())
        return done.stdout


def helm(home: Path, kubeconfig: Path | None = None, progress: ProgressReporter = SILENT) -> Helm:
    """Helm, built on first use.

    Raises: ConfigError if it cannot be built.
    """
    return Helm(build(progress, HELM) / "helm", home, kubeconfig)
