"""Paths as the sentences of the Go operator have them, which users and their scripts know."""

_SERVICES = "spec.services."


def component_path(component: str) -> str:
    """The path of a component in such a sentence: `spec.services[w]`, or `spec` of one that stands alone."""
    if not component.startswith(_SERVICES):
        return component
    return f"spec.services[{component.removeprefix(_SERVICES)}]"
