"""What an installation consists of: permissions, images, manifests. Nothing here runs in the operator."""
