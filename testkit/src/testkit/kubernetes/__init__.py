"""A Kubernetes of one node, built from source, and this project's charts on a cluster."""
