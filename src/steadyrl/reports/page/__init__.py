"""The HTML report of a folder of runs: a single file that opens offline."""

from steadyrl.reports.page.page import write_report

__all__ = ["write_report"]
