"""Stores, their keys and rows, and who may see them."""
