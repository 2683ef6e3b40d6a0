"""The informer of optional objects, which the operator may not be permitted to read."""

from kube_runtime.cache.informer import Informer
from kube_runtime.errors import Forbidden, OperatorError
from kube_runtime.types.meta import R


class PermittedInformer(Informer[R]):
    """Counts as synced and empty while listing is forbidden."""

    def _failed(self, error: OperatorError) -> float:
        if isinstance(error, Forbidden):
            self.synced.set()
        return super()._failed(error)
