"""The kubelet of the simulated nodes: the way from the API server to pods, and pods as local processes."""
