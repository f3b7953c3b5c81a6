"""A Kubernetes of one node, built from source, and this project's manifests on a cluster."""
