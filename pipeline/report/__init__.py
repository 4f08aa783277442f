"""The page that people look at: one file, made from the published copy, that asks for nothing else.

``reading`` selects from the views, ``extent`` decides how much of a long history is shown,
``document`` puts together what the page holds, ``charts`` declares the charts, ``page`` writes.
"""

from pipeline.report.fresh import renew_report, show
from pipeline.report.page import write_report

__all__ = ["renew_report", "show", "write_report"]
