"""Commands of kubectl and of earlier versions, each with the one that does it here."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dynamoctl.options import VALUED, is_kind


@dataclass(frozen=True, slots=True)
class _Typed:
    """What was typed after the command: names, and flags with their values."""

    program: str
    words: Sequence[str]
    names: Sequence[str]
    flags: Sequence[str]

    @property
    def target(self) -> str:
        """The first object as dynamoctl takes it, such as `chat` or `dm/lora`; NAME if there is none."""
        first, second, *_ = (*self.names, "", "")
        if is_kind(first):
            return second or "NAME" if first == "dgd" else f"{first}/{second or 'NAME'}"
        return first or "NAME"

    def kubectl(self, *verb: str) -> str:
        """The same command of kubectl, with the kind of graphs if none was named."""
        names = self.names
        if not any(flag.startswith(("-f", "--filename")) for flag in self.flags):
            names = self.names or ("NAME",)
            names = names if is_kind(names[0]) or "/" in names[0] else ("dgd", *names)
        return f"`{shlex.join(('kubectl', *verb, *names, *self.flags))}`"

    def kubectl_as(self, *verb: str) -> str:
        """The same command of kubectl with all that was typed."""
        return f"`{shlex.join(('kubectl', *verb, *self.words))}`"

    def ours(self, *words: str) -> str:
        """A command of dynamoctl with the flags that were typed."""
        return f"`{self.program} {shlex.join((*words, *self.flags))}`"

    def about(self, *verb: str) -> str:
        """A command of dynamoctl about the object that was named."""
        return self.ours(*verb, self.target)

    def renamed(self, *verb: str) -> str:
        """A command of dynamoctl with all that was typed."""
        return f"`{self.program} {shlex.join((*verb, *self.words))}`"


def _listed_or_shown(kind: str) -> Callable[[_Typed], str]:
    def command(typed: _Typed) -> str:
        if not typed.names:
            return typed.ours("get", kind)
        verb, *names = typed.names if typed.names[0] == "why" else ("", *typed.names)
        name = names[0].rpartition("/")[2] if names else "NAME"
        return typed.ours("top" if verb else "status", f"{kind}/{name}")

    return command


def _shell(typed: _Typed) -> str:
    command = shlex.join(("kubectl", "exec", "-it", "POD", *typed.flags, "--", "sh"))
    return f"`{command}`; {typed.ours('tree', typed.target)} lists the pods"


_ANSWERS: Mapping[str, Callable[[_Typed], str]] = {
    "annotate": lambda it: it.kubectl("annotate"),
    "api-resources": lambda it: it.kubectl_as("api-resources", "--api-group=nvidia.com"),
    "attach": _shell,
    "auth": lambda it: it.kubectl_as("auth"),
    "cluster-info": lambda it: it.ours("check"),
    "config": lambda it: it.kubectl_as("config"),
    "create": lambda it: it.renamed("apply") if it.flags else it.ours("new", it.target, "--model", "MODEL"),
    "crds": lambda it: it.renamed("install", "crds"),
    "debug": _shell,
    "delete": lambda it: it.kubectl("delete"),
    "describe": lambda it: f"{it.about('status')} and {it.about('why')}",
    "edit": lambda it: it.kubectl("edit"),
    "exec": _shell,
    "history": lambda it: it.about("rollout", "history"),
    "images": lambda it: it.renamed("install", "images"),
    "label": lambda it: it.kubectl("label"),
    "list": lambda it: it.renamed("get"),
    "ls": lambda it: it.renamed("get"),
    "models": _listed_or_shown("dm"),
    "patch": lambda it: it.kubectl("patch"),
    "pause": lambda it: it.about("rollout", "pause"),
    "replace": lambda it: it.renamed("apply"),
    "requests": _listed_or_shown("dgdr"),
    "restart": lambda it: it.about("rollout", "restart"),
    "start": lambda it: it.about("resume"),
    "stop": lambda it: it.about("suspend"),
    "undo": lambda it: it.about("rollout", "undo"),
    "uninstall": lambda it: it.renamed("install", "cleanup"),
    "validate": lambda it: it.renamed("lint"),
    "wait": lambda it: f"{it.about('status', '--watch')}",
}


def answer(program: str, words: Sequence[str]) -> str:
    """The message for a command line whose first word is a command of kubectl or an earlier one; else ""."""
    command, *rest = words
    typed = [*rest]
    if command not in _ANSWERS:
        return ""
    names, flags = list[str](), list[str]()
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            names.append(word)
            continue
        flags.append(word)
        if (word in VALUED or word in ("-f", "--filename")) and rest:
            flags.append(rest.pop(0))
    return f'unknown command "{command}": use {_ANSWERS[command](_Typed(program, typed, names, flags))}'
