"""Who comes in: what the gateway says of them, for how long, from where, and how much they may use."""
