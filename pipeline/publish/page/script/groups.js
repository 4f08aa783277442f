// The value of each group over batches, a small chart each.

async function drawGroups() {
  const metric = doc.metric_of[chosen.label];
  const attribute = attributeName(doc.attributes[chosen.attribute]);
  const all = index.groups.get(`${chosen.slice}|${chosen.attribute}|${metric}`) ?? [];
  if (!all.length) {
    note("groups", "");
    nothing("groups", !doc.attributes[chosen.attribute]
      ? `${doc.metrics[metric]} has no groups.`
      : `${doc.metrics[metric]} of ${attribute}, ${sliceName(doc.slices[chosen.slice])}: no values of single groups here.`);
    return;
  }
  const days = period().slice(-MOST_DRAWN);
  const lastOf = ({ columns }) => columns.value.findLast((value) => value !== null) ?? Infinity;
  const sorted = [...all].sort((a, b) => lastOf(a) - lastOf(b));
  const shown = sorted.slice(0, GROUPS_SHOWN);
  const from = Math.max(days[0], Math.min(...shown.map(({ columns }) => columns.from)));
  const rows = shown.flatMap(({ group, columns }) => {
    const n = columns.n.findLast((value) => value !== null) ?? 0;
    const name = `${doc.groups[group]}, ${count(n, "row")}`;
    return days.filter((batch) => batch >= from).map((batch) => {
      const k = batch - columns.from;
      const has = k >= 0 && k < columns.value.length;
      const [value, lower, upper] = ["value", "lower", "upper"].map((key) => (has ? columns[key][k] : null));
      return { name, batch: doc.batches[batch], value, lower, upper,
        Batch: doc.batches[batch], Group: doc.groups[group],
        Value: has && columns.n[k] !== null ? digits(value) : "", Interval: span(lower, upper),
        Rows: has && columns.n[k] !== null ? columns.n[k].toLocaleString("en-US") : "" };
    });
  });
  const more = all.length - shown.length;
  note("groups", `${doc.metrics[metric]} of each group of ${attribute}, `
    + `${sliceName(doc.slices[chosen.slice])}; lowest first, rows of the newest batch behind the name.`
    + (more > 0 ? ` ${count(more, "group")} with higher values ${more === 1 ? "is" : "are"} left out.` : ""));
  showTable("groups", ["batch", "group", "value", "interval", "rows"],
    rows.filter((row) => row.Rows !== "").map((row) => [row.Batch, row.Group, row.Value, row.Interval, row.Rows]).reverse(),
    `${doc.metrics[metric]} of the groups of ${attribute}, newest first`);
  const place = document.querySelector('[data-chart="groups"]');
  const across = Math.max(1, Math.min(4, shown.length, Math.floor(place.clientWidth / 250)));
  const width = Math.max(140, Math.floor(place.clientWidth / across) - 78);
  const spec = structuredClone(doc.charts.groups);
  spec.spec.width = width;
  await draw("groups", rows, `${doc.metrics[metric]} of ${count(shown.length, "group")} of ${attribute}`,
    { columns: across, spec: spec.spec });
}
