"""Readers that extract a value from the reply of a language model.

Readers accept any text and never raise. An ambiguous reply has no value, so an unreadable reply never counts as "yes".
"""
