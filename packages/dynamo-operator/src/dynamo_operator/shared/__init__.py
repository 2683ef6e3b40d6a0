"""What all kinds share: what is read of the cluster, problems, conditions, reports and patches."""
