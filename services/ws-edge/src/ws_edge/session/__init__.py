"""Open sockets, from the handshake to the end."""
