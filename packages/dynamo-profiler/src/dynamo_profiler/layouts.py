"""In which ways a model may be cut over GPUs."""

from typing import NamedTuple

from dynamo_profiler.shape import Shape


class Layout(NamedTuple):
    """One way to cut a model.

    `tensor` GPUs compute each layer together; a `pipeline` has stages, each with a part of the layers; `data`
    copies of attention share the experts of a mixture. `nodes` is over how many nodes the GPUs are.
    """

    tensor: int
    pipeline: int = 1
    data: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """Of the whole engine."""
        return self.tensor * self.pipeline * self.data


def layouts(
    shape: Shape, fewest: int, most: int, per_node: int, *, nodes: int = 1
) -> tuple[Layout, ...]:
    """The layouts with so many GPUs, smallest and simplest first. Tensor parallel sizes divide the heads.

    On one node: tensor parallel; for a mixture of experts also copies of attention that share the experts.
    On several: stages of a pipeline, one per node, and for a mixture the copies over all of them.
    """
    tensors = [size for size in _powers(min(most, per_node)) if shape.heads % size == 0]
    possible = [Layout(size) for size in tensors]
    if shape.routed:
        possible += [
            Layout(size, data=copies)
            for size in tensors
            for copies in _powers(min(most, per_node) // size)
            if copies > 1
        ]
    whole = [size for size in tensors if size == per_node]
    for count in _powers(nodes):
        if count > 1:
            possible += [Layout(size, pipeline=count, nodes=count) for size in whole]
            if shape.routed:
                possible += [
                    Layout(size, data=per_node // size * count, nodes=count) for size in tensors
                ]
    return tuple(sorted((layout for layout in possible if fewest <= layout.gpus), key=_order))


def _order(layout: Layout) -> tuple[int, int, int]:
    return layout.gpus, layout.nodes, -layout.tensor


def _powers(most: int) -> list[int]:
    return [2**power for power in range(most.bit_length())]
