"""ws-edge: turns WebSocket subscriptions into periodic gRPC polls, one read per key however many watch it."""
