"""Watches: the places that sockets watch, and their tokens."""
