"""The watch of objects that the operator works without, and may not be permitted to read."""

from dynamo_operator.kube.errors import Forbidden, OperatorError
from dynamo_operator.kube.informer import Informer
from dynamo_operator.kube.types.meta import R


class PermittedInformer(Informer[R]):
    """Like any other, but while it is refused there is nothing, and that holds up nobody."""

    def _failed(self, error: OperatorError) -> float:
        if isinstance(error, Forbidden):
            self.synced.set()
        return super()._failed(error)
