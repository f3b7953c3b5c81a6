"""The HTTP side of the edge: REST calls, their OpenAPI and AsyncAPI documents, and the pages for browsers."""
