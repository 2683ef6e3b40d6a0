"""A Kubernetes control plane on this machine: real API server and controllers; fake nodes, or a real one.

`instance` is the entrance. The layers below it: `binaries` (find or build the programs), `components`
(their command lines), `processes` (start and stop them), `certificates` and `kubeconfig` (who may
talk to whom), `optional_crds` (kinds of other projects). For a real node: `machine` (can it be one),
`network_namespace` and `control_group` (where all of it lives), `node_components` and `real_node` (its
programs). Images for it: `containerfile`, `image_build` and `oci`.
"""
