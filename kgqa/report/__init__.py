"""Formats answers and runs as text, tables and web pages."""
