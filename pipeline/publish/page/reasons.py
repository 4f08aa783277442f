"""Why a score has no value or no verdict, as people read it.

Not here: the closed list of reasons of values (``metrics.reasons``), and sentences about evidence
(``formatting.evidence``).
"""

from metrics.reasons import Reason
from pipeline.formatting.evidence import few_text

_TEXTS = {reason.value: reason.text for reason in Reason} | {"missing_group": "a group is missing"}


def reason_text(said: str) -> str:
    """The words of a code, with the group that it names.

    >>> reason_text("one_group"), reason_text("few_queries: X"), reason_text("of later")
    ('fewer than two groups to compare', 'X: few queries', 'of later')
    """
    code, _, group = said.partition(": ")
    few = few_text(code) if code.startswith("few_") else code.replace("_", " ")
    text = _TEXTS.get(code, few)
    return f"{group}: {text}" if group else text
