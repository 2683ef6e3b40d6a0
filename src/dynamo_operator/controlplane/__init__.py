"""A Kubernetes control plane on this machine: real API server, controllers and scheduler; fake nodes.

`instance` is the entrance. The layers below it: `binaries` (find or build the programs), `components`
(their command lines), `processes` (start and stop them), `certificates` and `kubeconfig` (who may
talk to whom), `optional_crds` (kinds of other projects).
"""
