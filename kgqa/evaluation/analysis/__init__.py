"""Analysis of runs: aggregated scores, comparisons of runs, reachable gold answers, and causes of wrong answers."""
