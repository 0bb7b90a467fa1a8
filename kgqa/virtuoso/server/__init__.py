"""The server process: configuration, start, state, stop, SQL."""
