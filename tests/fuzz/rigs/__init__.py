"""What the fuzz tests send to: real servers on real sockets, and what they log."""
