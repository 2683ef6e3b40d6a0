"""Progress in Jupyter: one drawing of the graph, which is replaced at each change."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_graphs.library.clusters import Seen
    from dynamo_graphs.library.graph import Graph


def redrawn(graph: "Graph") -> "Seen | None":
    """In a kernel of Jupyter, draw the graph, and return what replaces the drawing. None elsewhere.

    The display is made in the thread of the cell; later drawings may come from another thread.
    """
    jupyter = sys.modules.get("IPython")
    if jupyter is None or not hasattr(jupyter.get_ipython(), "kernel"):
        return None
    shown: Seen = jupyter.display.display(graph, display_id=True).update
    return shown
