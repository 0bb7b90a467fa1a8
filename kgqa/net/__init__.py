"""Servers: addresses, limits, and the threads that wait for them."""
