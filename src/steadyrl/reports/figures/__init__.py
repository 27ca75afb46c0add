"""Figures of finished runs, drawn with Matplotlib."""
