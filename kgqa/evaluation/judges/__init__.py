"""Language models as judges of answers.

Unreadable replies are left out of every mean, and their share is reported. A judge's verdict may be wrong: compare the
verdicts with the metrics of docs/metrics.md.
"""
