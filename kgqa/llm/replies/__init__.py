"""Readers that extract a value from the reply of a language model.

Readers accept any text and never raise. If a reply is ambiguous, there is no value: an unparsed reply is never "yes".
"""
