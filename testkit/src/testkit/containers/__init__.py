"""Builds the project's images, and runs compose.yaml's stack from them, by Docker or Podman and without compose."""
