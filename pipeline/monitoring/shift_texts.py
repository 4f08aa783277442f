"""What a text says of a score that moved: who fell behind, how far, how sure, since when.

Not here: the rest of an alert (``alert_texts``).
"""

from pipeline.formatting.numbers import number
from schemas.columns import Row


def shift_lines(trend: Row) -> list[str]:
    """What the charts say of a shift or an improvement, by its row of trends."""
    p = trend["p_value"] if trend["p_adjusted"] is None else trend["p_adjusted"]
    among = f" among {trend['family_size']:,} series" if trend["family_size"] else ""
    side = "fair" if trend["residual"] < 0 else "unfair"
    began = f"By the {trend['chart']} chart it began with {trend['since']}"
    if None not in (trend["level_before"], trend["level_now"]):
        before, now = number(trend["level_before"]), number(trend["level_now"])
        began += f": {before} before, {now} since then"
    return [
        *_group_lines(trend),
        f"{abs(trend['residual']):.1f} standard errors towards {side}, against "
        f"{trend['baseline']} batches; p = {p:.2g}{among}.",
        f"{began}.",
        *(["An outlier so far: alone, it moves no later limit."] if trend["outlier"] else ()),
    ]


def _group_lines(trend: Row) -> list[str]:
    """Which group moved against the others, and where to."""
    if trend["group_value"] is None or trend["against"] is None:
        return []
    now, usual = trend["against"], trend["against_center"]
    verb = "fell against" if now < usual else "rose against"
    if trend["improved"]:
        verb = "came closer to"
    if trend["is_ratio"]:
        values = f"{number(now)} times their mean, usually {number(usual)}"
    else:
        values = f"{now:+.4g} from their mean, usually {usual:+.4g}"
    return [f"{trend['group_value']} {verb} the others: {values}."]
