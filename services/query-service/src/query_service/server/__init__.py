"""The edge: servers for callers and peers, connections to peers, and the messages of the contract."""
