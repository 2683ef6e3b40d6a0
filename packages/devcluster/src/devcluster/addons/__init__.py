"""What tests and demos add to a control plane: CRDs of other projects, controllers, servers."""
