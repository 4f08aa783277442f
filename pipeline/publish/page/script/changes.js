// What moved most in a batch.

async function drawChanges() {
  const batch = doc.batches[chosen.batch];
  const rows = doc.changes.filter((each) => each[0] === chosen.batch).map(
    ([, slice, attribute, label, value, center, residual, worse, shift, since]) => {
      const of = doc.attributes[attribute];
      const name = `${doc.labels[label].label}${of ? ` of ${short(of)}` : ""}, ${sliceName(doc.slices[slice])}`;
      return {
        name, residual, end: Math.max(residual, 0), toward: worse ? "unfair" : "fair",
        said: `${worse ? "▲ towards unfair" : "▼ towards fair"}${shift ? ", a shift" : ""}`,
        Score: name, Now: digits(value), Expected: digits(center),
        Moved: `${digits(Math.abs(residual))} standard errors ${worse ? "towards unfair" : "towards fair"}`,
        Since: since ?? "",
      };
    });
  if (!rows.length) {
    note("changes", "");
    nothing("changes", doc.scored[chosen.batch]
      ? `${batch} is compared with nothing yet: trends need more batches before it (trends.least in the settings), or it is too far back for this page.`
      : `${batch} has no scores.`);
    return;
  }
  note("changes", `What moved most in ${batch}, against the batches before it.`);
  showTable("changes", ["score", "now", "expected", "moved", "shift since"],
    rows.map((row) => [row.Score, row.Now, row.Expected, row.Moved, row.Since]), `Largest changes of ${batch}`);
  await draw("changes", rows, `${rows[0].Score} moved most: ${rows[0].Moved}.`);
}
