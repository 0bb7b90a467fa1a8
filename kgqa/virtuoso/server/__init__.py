"""Starts and stops the server of a folder, adopts databases, loads files, and reports the server's status."""
