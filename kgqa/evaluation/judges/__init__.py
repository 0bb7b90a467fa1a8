"""Language models as judges of answers.

Replies that cannot be read are left out of every mean and reported as a rate. A judge does not measure truth: compare
its verdicts with the metrics of docs/metrics.md.
"""
