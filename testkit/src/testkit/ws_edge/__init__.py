"""Test doubles of ws-edge; nothing in the service imports them."""
