// All groups of all attributes, worst first, with intervals, against an equal share.

const GROUPS_UNFOLDED = 12;
const REACHES = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10];
const REACH_TICKS = 2;

// The metric whose groups are shown: that of the chosen score, or the first that has groups.
function groupMetric() {
  const own = doc.metric_of[chosen.label];
  const has = (metric) => doc.group_series.some(([slice, , of]) => slice === chosen.slice && of === metric);
  if (has(own)) return own;
  const exposure = doc.metrics.indexOf("EXP");
  return has(exposure) ? exposure : doc.metric_of.find(has) ?? null;
}

const aboutMetric = (metric) => doc.labels[doc.metric_of.indexOf(metric)];

// Groups of an attribute in a batch, each with its distance from parity; those compared, worst first.
function groupsAt(slice, attribute, metric, batch) {
  const about = aboutMetric(metric);
  const rows = groupsOf(slice, attribute, metric).map(({ group, columns }) => {
    const n = batch - columns.from;
    const value = raw(columns, batch);
    return { group, columns, value, lower: columns.lower[n] ?? null, upper: columns.upper[n] ?? null, n: columns.n[n] ?? null };
  }).filter(({ n }) => n !== null);
  const compared = rows.filter((row) => row.value !== null && doc.groups[row.group][1] !== "unknown");
  const weighed = rows.filter((row) => row.value !== null && row.n);
  const parity = about.parity === "zero" ? 0 : about.parity === "half" ? 0.5
    : about.parity === "average"
      ? weighed.reduce((sum, { value, n }) => sum + value * n, 0) / weighed.reduce((sum, { n }) => sum + n, 0)
      : compared.reduce((sum, { value }) => sum + value, 0) / compared.length;
  const from = (value) => (value === null ? null : about.parity === "zero" ? value : value / parity - 1);
  for (const row of rows) {
    Object.assign(row, { away: from(row.value), low: from(row.lower), high: from(row.upper), compared: compared.includes(row) });
    row.maybe = row.low !== null && row.low <= 0 && row.high >= 0;
  }
  const down = about.higher !== doc.flip ? 1 : -1;
  rows.sort((a, b) => b.compared - a.compared || down * ((a.away ?? Infinity) - (b.away ?? Infinity)));
  return { rows, parity, about };
}

// "18% less, may be equal"
function awayText(row, about) {
  if (row.away === null) return "no value";
  const size = Math.abs(row.away);
  const amount = about.parity === "zero" ? `${digits(size)} ${row.away < 0 ? "below" : "above"}`
    : `${percent(size)} ${row.away < 0 ? "less" : "more"}`;
  if (!row.compared) return `${amount}, not compared`;
  if (row.away === 0) return "equal";
  return row.maybe ? `${amount}, may be equal` : amount;
}

// How far the axis goes: the same for every day of the page.
function reachOf(metric) {
  let most = 0;
  const about = aboutMetric(metric);
  for (const attribute of doc.attributes.keys()) {
    if (!groupsOf(chosen.slice, attribute, metric).length) continue;
    for (const batch of doc.batches.keys()) {
      if (!doc.scored[batch]) continue;
      for (const row of groupsAt(chosen.slice, attribute, metric, batch).rows) {
        if (row.compared && Number.isFinite(row.away)) most = Math.max(most, Math.abs(row.away));
      }
    }
  }
  const last = REACHES.find((each) => each >= most) ?? most;
  // Room for the text at the last tick.
  return { last, reach: last * 1.25, text: (value) => (value === 0 ? "equal" : `${value > 0 ? "+" : "−"}${about.parity === "zero" ? bare(Math.abs(value)) : `${bare(Math.abs(value) * 100)}%`}`) };
}

const reaches = new Map();
function reachFor(metric) {
  const key = `${chosen.slice}|${metric}`;
  if (!reaches.has(key)) reaches.set(key, reachOf(metric));
  return reaches.get(key);
}

function groupRow(row, about, reach, losing) {
  const place = (value) => 50 + 50 * Math.max(-1, Math.min(1, value / reach));
  const track = element("div", { class: "track", "aria-hidden": "true" },
    ...[-0.4, 0.4, -0.8, 0.8].map((share) => element("i", { class: "gl", place: { left: pct(50 + 50 * share) } })),
    element("i", { class: "par", place: { left: "50%" } }));
  if (row.low !== null && row.high !== null) {
    track.append(element("i", { class: "iv", place: { left: pct(place(row.low)), width: pct(place(row.high) - place(row.low)) } }));
  }
  if (row.away !== null) track.append(element("i", { class: "pt", place: { left: pct(place(row.away)) } }));
  const bad = row.group === losing;
  return element("div", { class: `row ${bad ? "bad" : row.maybe || !row.compared ? "soft" : ""}`, "data-group": row.group },
    element("span", { class: "name", title: `${groupName(row.group)}: ${digits(row.value)}, ${count(row.n, "row")}` }, name(groupTitle(row.group))),
    track, element("span", { class: "say" }, bad ? "✕ " : "", awayText(row, about)));
}

function groupScale({ last, reach, text }) {
  const ticks = Array.from({ length: 2 * REACH_TICKS + 1 }, (_, n) => ((n - REACH_TICKS) / REACH_TICKS) * last);
  return element("div", { class: "row line", "aria-hidden": "true" }, element("span", { class: "empty" }),
    element("div", { class: "scale" }, ...ticks.map((tick) => element("span", { place: { left: pct(50 + 50 * tick / reach) } },
      tick === 0 ? element("b", {}, text(tick)) : text(tick)))),
    element("span", { class: "empty" }));
}

function drawGroups() {
  const batch = shownBatch();
  const metric = groupMetric();
  const place = part("groups");
  if (batch === null || metric === null) {
    byId("h-groups").textContent = "Who got how much";
    place.replaceChildren(small("There are no values of single groups here."));
    return;
  }
  const axis = reachFor(metric);
  const order = [chosen.attribute, ...doc.attributes.keys()].filter((each, n, all) => all.indexOf(each) === n);
  const parts = order.map((attribute) => ({ attribute, ...groupsAt(chosen.slice, attribute, metric, batch) })).filter(({ rows }) => rows.length);
  if (!parts.length) {
    place.replaceChildren(small(`No values of groups are kept for ${plainDay(doc.batches[batch])} here.`));
    byId("h-groups").textContent = "Who got how much";
    return;
  }
  const { about } = parts[0];
  byId("h-groups").replaceChildren(name(groupFinding(parts, metric, batch)));
  const rows = element("div", { class: "rows" }, groupScale(axis));
  for (const { attribute, rows: found } of parts) {
    const losing = losingGroup(attribute, metric, batch);
    const drawn = found.map((row) => groupRow(row, about, axis.reach, losing));
    rows.append(element("h3", {}, name(capital(attributeName(attribute)))), ...drawn.slice(0, GROUPS_UNFOLDED));
    if (drawn.length > GROUPS_UNFOLDED) {
      rows.append(element("details", {}, element("summary", {}, `${drawn.length - GROUPS_UNFOLDED} more groups of ${attributeName(attribute)}`), ...drawn.slice(GROUPS_UNFOLDED)));
    }
  }
  const against = { zero: "0", half: "half of the pairs", average: `the average item (${digits(parts[0].parity)})`, mean: `the mean of the groups (${digits(parts[0].parity)})` }[about.parity];
  const note = `${capital(about.thing)} of each group${chosen.slice ? ` in ${sliceName(chosen.slice)}` : ""} against ${against}, worst first. Lines are ${Math.round(doc.confidence * 100)}% intervals.`;
  const columns = ["attribute", "group", "value", "lower", "upper", "rows", about.parity === "zero" ? "from equal" : "share from equal"];
  const behind = parts.flatMap((each) => each.rows.map((row) => [attributeName(each.attribute), groupName(row.group), row.value, row.lower, row.upper, row.n, row.away]));
  place.replaceChildren(element("div", { class: "two" },
    element("div", {}, small(note), rows,
      rowsBehind("These groups as a table", "groups", columns, behind,
        behind.map(([of, group, ...numbers]) => [of, group, ...numbers.map((value, n) => (n === 3 ? grouped(String(value)) : value === null ? "" : digits(value)))]))),
    element("div", {}, overTime(parts[0], metric), qualityPlot())));
}

// The group that a breach of this metric names, in an attribute.
function losingGroup(attribute, metric, batch) {
  const labels = doc.metric_of.flatMap((of, label) => (of === metric ? [label] : []));
  for (const label of labels) {
    const found = at(seriesOf(chosen.slice, attribute, label), batch);
    if (found?.status === "breach") return found.worst;
  }
  return -1;
}

function groupFinding(parts, metric, batch) {
  const [{ rows, about, attribute }] = parts;
  const compared = rows.filter((row) => row.compared && row.away !== null);
  if (!compared.length || isHeldBack()) return "Who got how much";
  const [worst] = compared;
  const than = { average: "than the average item", mean: "than the mean of the groups", half: "than half of the pairs", zero: "the equal share" }[about.parity];
  if (losingGroup(attribute, metric, batch) >= 0 || (!worst.maybe && Math.abs(worst.away) >= 0.1)) {
    return `${groupTitle(worst.group)} got ${awayText(worst, about)} ${than}`;
  }
  const most = Math.max(...parts.flatMap((part) => part.rows).filter((row) => row.compared && row.away !== null).map((row) => Math.abs(row.away)));
  if (most === 0) return "All groups got the same";
  return about.parity === "zero" ? `No group is further than ${digits(most)} from its equal share`
    : `No group is further than ${percent(most)} from ${about.parity === "average" ? "the average item" : "equal"}`;
}
