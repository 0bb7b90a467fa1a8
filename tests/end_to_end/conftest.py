"""Tests of the command line; the runners kgqa, kgqa_process and started are fixtures of `tests/cli_runner.py`."""
