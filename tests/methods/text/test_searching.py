"""Retrieval for one question: timeouts of the graph and the budget of the question."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from kgqa.methods.text.searching import within_budget
from kgqa.trace import Budget, BudgetExhausted, Trace


def timed_out(trace):
    with within_budget(trace):
        raise StoreTimeout("The query was stopped.")


def test_timeout_at_the_end_of_the_time_is_a_spent_budget():
    with pytest.raises(BudgetExhausted, match="seconds"):
        timed_out(Trace(Budget(seconds=0)))


@pytest.mark.parametrize("budget", [Budget(), Budget(seconds=1000)])
def test_other_timeouts_stay(budget):
    with pytest.raises(StoreTimeout):
        timed_out(Trace(budget))
