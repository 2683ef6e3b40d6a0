"""The permissions, images and manifests of an installation, and checks of a cluster."""
