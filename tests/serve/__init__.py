"""Tests of kgqa.serve."""
