"""Issue, store and renew the certificates of the operator's servers, webhooks and metrics."""
