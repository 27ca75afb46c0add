"""The page: what a folder of runs learned, as one HTML file that opens from disk."""

from steadyrl.report.page import write_report

__all__ = ["write_report"]
