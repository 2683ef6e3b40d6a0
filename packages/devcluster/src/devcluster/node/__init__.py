"""A real node: this machine's kubelet and containerd in namespaces of their own."""
