"""What a graph may use, a module or folder for each.

Those in the list `FEATURES` (`graph/decide.py`) have a value of type `Feature`: history, restart, suspension,
exposure, `rollouts/feature.py` and `scaling/feature.py`; PVCs and shared accounts are in `graph/decide.py`
itself. Grove is a `Provider` (`grove/provider.py`). The others change what exists anyway: `graph/render.py`
renders disruption budgets and the endpoint picker, `graph/read.py` reads SSH keys, and rendering keeps
namespace defaults and what pods of an earlier operator have (takeover).
"""
