"""Trained policies as files that run without steadyrl."""
