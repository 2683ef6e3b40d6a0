"""The pods of one replica on several nodes: a leader and its workers, and how they connect.

Names and ranks are known only inside a pod. The kubelet writes `$(NAME)` into arguments, a shell reads
`$NAME` and computes; what only a shell can express has no form as an argument. Backends write their launch
with these references, orchestrators define them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_graphs.api.entry_point import several_flags
from dynamo_graphs.render.shell import Fragment, Word, line


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that is known only inside the pod, in the two ways to write it.

    `argument` is what the kubelet expands in `args`; "" means that only a shell can say it.
    """

    shell: Fragment
    argument: str = ""

    def followed_by(self, text: str) -> "Reference":
        """The reference with plain text behind it, such as a port."""
        return Reference(
            Fragment(f"{self.shell.text}{text}"), f"{self.argument}{text}" if self.argument else ""
        )


Part: TypeAlias = str | Reference
"""One argument of a launch: a text, or a text that is known only inside the pod."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """How the pods of one group name each other under an orchestrator.

    `worker_rank` counts from 1; the leader is 0. `names_come_late` means: the names of the workers
    may not resolve yet when the leader starts, so a leader that needs them waits.
    """

    leader: Reference
    workers: tuple[Reference, ...]
    worker_rank: Reference
    names_come_late: bool = False


@dataclass(frozen=True, slots=True)
class GroupNode:
    """For which pod of a group a template is: the leader, or any of the workers."""

    is_leader: bool
    hosts: Hosts

    @property
    def count(self) -> int:
        """The number of nodes, and of pods, of the group."""
        return 1 + len(self.hosts.workers)

    @property
    def rank(self) -> Part:
        """The pod's number in the group; the leader's is 0."""
        return "0" if self.is_leader else self.hosts.worker_rank


def arguments(parts: Sequence[Part]) -> list[str] | None:
    """The parts as arguments that the kubelet expands. None means: they need a shell."""
    found = [part if isinstance(part, str) else part.argument for part in parts]
    is_late = [isinstance(part, Reference) for part in parts]
    needs_shell = any(late and not text for late, text in zip(is_late, found, strict=True))
    return None if needs_shell else found


def users_parts(texts: Iterable[str]) -> list[Part]:
    """A user's arguments; one that holds several flags is as many words, which only a shell can say.

    The Go operator joins all arguments into a script without quotes, and manifests rely on it there
    (`docs/decisions/0034-manifests-of-strangers.md`).
    """
    return [
        Reference(Fragment(flags)) if (flags := several_flags(each)) else each for each in texts
    ]


def words(parts: Iterable[Part]) -> list[Word]:
    """The parts as words of a shell."""
    return [part if isinstance(part, str) else part.shell for part in parts]


def shell_line(parts: Iterable[Part]) -> str:
    """The parts as text for a shell, the user's quoted and ours as they are."""
    return line(words(parts))
