"""Tests of kgqa.methods.tog3."""
