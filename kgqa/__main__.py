"""Runs the command line: `python -m kgqa`."""

from kgqa.cli.main import main

main()
