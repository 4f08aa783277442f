"""A picture of a month of verdicts, small enough to be kept beside each night's results."""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from pipeline.formatting.looks import LOOKS, VERDICTS

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_JUDGED = [look for look in VERDICTS if look.name != "not_judged"]
_MISSING = LOOKS["missing"]
_WIDTH, _HEIGHT = 560, 120


def verdict_words(batches: Sequence[str], counted: Sequence[Mapping[str, Any]]) -> str:
    """What the picture shows, for those who do not see it."""
    breaches = [row for row in counted if row["status"] == "breach"]
    missing = len(batches) - len({row["batch"] for row in counted})
    return (
        f"Verdicts from {batches[0]} to {batches[-1]}: breaches in {len(breaches)} of "
        f"{len(batches)} batches, {missing} missing or not judged"
    )


def verdict_picture(batches: Sequence[str], counted: Sequence[Mapping[str, Any]]) -> bytes:
    """A PNG with a bar for each of ``batches``, made of its scores by verdict.

    Takes rows with ``batch``, ``status`` and how many ``scores``; a batch without any is hollow.
    """
    totals: dict[str, int] = {}
    for row in counted:
        totals[row["batch"]] = totals.get(row["batch"], 0) + row["scores"]
    words = {look.name: f"{look.symbol} {look.word}" for look in (*_JUDGED, _MISSING)}
    bars = [{**row, "verdict": words[row["status"]]} for row in counted]
    hollow = [
        {"batch": batch, "scores": max(totals.values()), "verdict": words["missing"]}
        for batch in batches
        if batch not in totals
    ]
    shown = [look for look in _JUDGED if any(row["status"] == look.name for row in counted)]
    shown += [_MISSING] if hollow else []
    x = alt.X(
        "batch:O",
        scale=alt.Scale(domain=list(batches)),
        axis=alt.Axis(title=None, labelAngle=0, values=list(batches[::7])),
    )
    colour = alt.Scale(
        domain=[words[look.name] for look in shown], range=[look.colour for look in shown]
    )
    base = alt.Chart().encode(
        x=x,
        y=alt.Y("sum(scores):Q", title="judged scores"),
        color=alt.Color("verdict:N", scale=colour, title=None),
    )
    order = {look.name: at for at, look in enumerate(_JUDGED)}
    layers = [
        base.mark_bar()
        .encode(order="gravity:Q")
        .properties(
            data=alt.InlineData(values=[{**bar, "gravity": order[bar["status"]]} for bar in bars])
        ),
        base.mark_bar(filled=False, strokeDash=[2, 2]).properties(
            data=alt.InlineData(values=hollow)
        ),
    ]
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, background="white")
    return packed(vl_convert.vegalite_to_png(chart.to_json()))


def packed(png: bytes) -> bytes:
    """The same picture in fewer bytes: what draws it packs for speed.

    Source: PNG specification, third edition, 5.3 (chunk layout) and 11.2.3 (IDAT).
    """
    chunks = list(_chunks(png))
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    head, *others = [chunk for chunk in chunks if chunk[0] != b"IDAT"]
    kept = [head, (b"IDAT", zlib.compress(pixels, 9)), others[-1]]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in kept
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size
