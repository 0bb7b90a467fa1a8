"""Analysis of runs: aggregates, comparisons, reachable answers, losses."""
