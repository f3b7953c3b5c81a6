"""What is served over HTTP: calls, documents and pages."""
