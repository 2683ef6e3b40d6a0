"""kubectl as a function: what the control plane itself asks of its API server goes through it."""

from dataclasses import dataclass
from pathlib import Path

from devcluster.processes import completed
from kube_runtime.errors import OperatorError


class KubectlError(OperatorError):
    """kubectl ended with an error; the message is the end of its output."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with the credentials of one kubeconfig file."""

    program: Path
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What kubectl prints.

        Raises: KubectlError.
        """
        flags = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}")
        answer = completed([self.program, *flags, *arguments], stdin=stdin)
        if answer.returncode:
            words = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
            raise KubectlError(f"kubectl {arguments[0]}: {words}")
        return answer.stdout

    def apply(self, *files: Path) -> None:
        """Applies the objects in these files, on the server's side."""
        if files:
            self("apply", "--server-side", "--force-conflicts", *(f"--filename={f}" for f in files))
