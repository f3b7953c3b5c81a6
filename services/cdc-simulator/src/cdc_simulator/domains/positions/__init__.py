"""The broker: open positions, which grow, shrink, change hands and are closed."""
