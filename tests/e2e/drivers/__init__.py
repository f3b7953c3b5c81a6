"""Drivers of the end-to-end tests: the source, the clients, the model."""
