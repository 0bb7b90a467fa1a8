"""Reports of tests without lone surrogates, which no process of pytest-xdist can send to another.

The text of a failed assertion may hold one, because tests are given hostile text. It would end the worker, and with it
the whole run. In reports it is shown as an escape, `\\udc80`.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Any:
    """Escape lone surrogates in a report that is sent to the main process."""
    return encodable((yield))


def encodable(value: Any) -> Any:
    """Return a value of plain data in which all texts can be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(encodable(each) for each in value)
    return value
