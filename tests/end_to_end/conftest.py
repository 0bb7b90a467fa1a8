"""Tests of the command line. Its runners are fixtures of `tests/cli_runner.py`: kgqa, kgqa_process, started."""
