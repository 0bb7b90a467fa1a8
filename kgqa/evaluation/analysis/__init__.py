"""What runs show: aggregates, comparisons, reachability and losses."""
