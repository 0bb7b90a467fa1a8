"""A graph as a service: the page in a browser, the HTTP API, the tools for agents (MCP)."""
