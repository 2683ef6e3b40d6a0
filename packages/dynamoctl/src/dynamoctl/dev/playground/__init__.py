"""The playground: the operator in the background of a local control plane, installed as in a cluster."""
