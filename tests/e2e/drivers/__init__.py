"""What the end-to-end tests tell their stories with: the source, the clients, the model."""
