// Fairness against quality.

function qualityLabels() {
  const whole = doc.attributes.indexOf(null);
  return doc.labels.map((score, label) => ({ score, label })).filter(({ score, label }) =>
    score.family === "quality" && whole >= 0 && seriesOf(chosen.slice, whole, label));
}

async function drawQuality() {
  const [first] = qualityLabels().sort((a, b) =>
    b.score.label.startsWith("nDCG") - a.score.label.startsWith("nDCG"));
  const columns = seriesOf(chosen.slice, chosen.attribute, chosen.label);
  if (!first || !columns) {
    note("quality", "");
    nothing("quality", "No quality score is computed for this slice: add one, such as nDCG@10, to metrics in the settings.");
    return;
  }
  const other = seriesOf(chosen.slice, doc.attributes.indexOf(null), first.label);
  const rows = period().map((batch) => {
    const x = at(other, batch);
    const y = at(columns, batch);
    if (!x || !y || x.value === null || y.value === null) return null;
    return { order: batch, quality: x.value, value: y.value, status: y.status,
      size: y.status === "breach" ? 120 : 35, Batch: doc.batches[batch],
      Fairness: digits(y.value), Quality: digits(x.value), Verdict: verdict(y.status) };
  }).filter(Boolean).slice(-MOST_DRAWN);
  if (!rows.length) {
    note("quality", "");
    nothing("quality", "No batch of this period has both values.");
    return;
  }
  const newest = rows[rows.length - 1];
  newest.named = newest.Batch;
  newest.size = 120;
  note("quality", `${aboutScore()} (upwards) against ${first.score.label} (to the right); a line joins batch to batch.`);
  showTable("quality", ["batch", doc.labels[chosen.label].label, first.score.label, "verdict"],
    rows.map((row) => [row.Batch, row.Fairness, row.Quality, row.Verdict]).reverse(), "Fairness and quality, newest first");
  const spec = structuredClone(doc.charts.quality);
  for (const layer of spec.layer) {
    layer.encoding.x.title = first.score.label;
    layer.encoding.y.title = doc.labels[chosen.label].label;
  }
  await draw("quality", rows, `${aboutScore()} against ${first.score.label}: ${newest.Fairness} and ${newest.Quality} in ${newest.Batch}.`,
    { layer: spec.layer });
}
