"""What to say of an object of another project that no controller has observed: is that project running?

A CRD accepts objects although nothing reconciles them. The text has the time of creation and stays the
same, so it costs one write.
"""

from kube_runtime.types.meta import Resource


def unobserved(live: Resource, project: str) -> str:
    """The obstacle of an object whose status is empty; `project` is whose controller should write it."""
    created = live.metadata.creation_timestamp
    since = f" since it was created at {created}" if created else ""
    return (
        f"no controller has observed {live.KIND.name} {live.metadata.name}{since}; if that lasts, "
        f"check that the controller of {project} runs"
    )
