"""Tests of kgqa.serve.tools."""
