// Groups over time, each named at the end of its line; and fairness against quality.

const LINES_NAMED = 7;

function overTime({ rows, about, attribute }, metric) {
  const batches = period();
  const shown = rows.filter((row) => row.value !== null && row.compared);
  if (batches.length < 2 || !shown.length) return element("div", { class: "part" }, element("h3", {}, "Groups over time"), small("From the second batch on."));
  const lines = shown.map(({ group, columns }) => ({ group, columns, values: batches.map((batch) => raw(columns, batch)) }));
  const [low, high] = rangeOf(lines.flatMap(({ values }) => values), aboutRange(about));
  const scale = scales(batches.length, low, high);
  const { svg, box } = canvas(low, high, scale.y, ticksIn(low, high), bare);
  box.classList.add("low");
  const batch = shownBatch();
  const losing = losingGroup(attribute, metric, batch);
  gapsOf(box, svg, batches, scale);
  lines.slice(LINES_NAMED).forEach(({ values }) => linesOf(svg, values, scale, "ln faint"));
  lines.slice(0, LINES_NAMED).reverse().forEach(({ group, values }) =>
    linesOf(svg, values, scale, group === losing ? "ln loser" : group === lines[0].group ? "ln" : "ln other"));
  const here = batches.indexOf(batch);
  lines.slice(0, LINES_NAMED).forEach(({ group, values }, n) => {
    const last = values.findLastIndex((value) => value !== null);
    if (last < 0) return;
    const strong = group === losing ? "strong loser" : n ? "" : "strong";
    const value = here >= 0 ? values[here] : null;
    put(box, { class: `end ${strong}`, "data-at": scale.y(values[last]), title: groupName(group) }, 100, scale.y(values[last]),
      name(groupTitle(group)), value === null ? "" : element("b", {}, digits(value)));
    if (value !== null) put(box, { class: `dot ${group === losing ? "loser" : "soft"}` }, scale.x(here), scale.y(value));
  });
  batchLabels(box, batches, scale.x);
  const left = lines.length - LINES_NAMED;
  const more = left > 0 ? ` The ${LINES_NAMED} worst are named; ${count(left, "other")} in grey.` : "";
  return element("div", { class: "part" }, element("h3", {}, name(timeFinding(lines[0], batch))),
    small(`${capital(about.thing)} of ${attributeName(attribute)}; numbers are of ${plainDay(doc.batches[batch])}.${more}`), box,
    rowsBehind("These lines as a table", "groups-over-time", ["batch", ...lines.map(({ group }) => groupName(group))],
      batches.map((each, n) => [doc.batches[each], ...lines.map(({ values }) => values[n])]),
      batches.map((each, n) => [doc.batches[each], ...lines.map(({ values }) => (values[n] === null ? "" : digits(values[n])))]).reverse()));
}

// The range of a metric itself, which that of a score need not be.
const aboutRange = (about) => (about.parity === "zero" ? {} : { low: 0 });

function timeFinding({ group, columns }, batch) {
  const usual = usualBefore(columns, batch);
  const value = raw(columns, batch);
  if (!usual || value === null) return `${groupTitle(group)} over time`;
  if (isHeldBack()) return "Groups over time";
  if (!usual.moved(value)) return `${groupTitle(group)} as on other days`;
  return `${groupTitle(group)} ${value < usual.center ? "fell" : "rose"} to ${digits(value)}, usually ${digits(usual.center)}`;
}

// The quality score that fairness is drawn against: nDCG where there is one.
function qualityLabel() {
  const whole = noGroups();
  const found = doc.labels.flatMap((about, label) => (about.quality && whole >= 0 && seriesOf(chosen.slice, whole, label) ? [label] : []));
  return found.find((label) => doc.labels[label].label.startsWith("nDCG")) ?? found[0];
}

function qualityPlot() {
  const other = qualityLabel();
  const columns = seriesOf(chosen.slice, chosen.attribute, chosen.label);
  if (other === undefined || other === chosen.label || !columns) return "";
  const quality = seriesOf(chosen.slice, noGroups(), other);
  const about = doc.labels[chosen.label];
  const points = period().map((batch) => ({ batch, x: raw(quality, batch), found: at(columns, batch) }))
    .filter(({ x, found }) => x !== null && found && found.value !== null);
  if (points.length < 2) return "";
  const batch = shownBatch();
  const limit = limitOf(limitsAt(columns, batch));
  const [low, high] = rangeOf([...points.map(({ found }) => found.value), limit], about);
  const [left, right] = rangeOf(points.map(({ x }) => x), doc.labels[other]);
  const y = scales(2, low, high).y;
  const x = (value) => ((value - left) / (right - left)) * 100;
  const { svg, box } = canvas(low, high, y, ticksIn(low, high), tickOf(about));
  box.classList.add("square");
  for (const tick of ticksIn(left, right)) {
    svg.append(drawing("line", { class: "grid-line", x1: x(tick), x2: x(tick), y1: 0, y2: 100 }));
    put(box, { class: "x" }, x(tick), null, bare(tick));
  }
  box.append(element("span", { class: "x title" }, `${doc.labels[other].plain}: further right is better →`));
  if (limit !== null) {
    svg.append(drawing("line", { class: "lim", x1: 0, x2: 100, y1: y(limit), y2: y(limit) }));
    put(box, { class: "in left limit" }, 100, y(limit), `limit ${tickOf(about)(limit)}`);
  }
  for (const point of points) {
    const bad = point.found.status === "breach";
    const own = point.batch === batch;
    put(box, { class: `dot ${bad ? "bad" : ""} ${own ? "on" : ""}` }, x(point.x), y(point.found.value));
    if (bad || own) put(box, { class: `${bad ? "alarm" : "strong"} ${own ? "sel" : ""} ${x(point.x) > 60 ? "in left" : "in"}` }, x(point.x), y(point.found.value),
      bad ? "✕ " : "", name(shortDay(doc.batches[point.batch])));
  }
  return element("div", { class: "part" }, element("h3", {}, qualityFinding(quality, columns, batch)),
    small(`${capital(scoreName(chosen.label, chosen.attribute))}${about.alarm === "low" ? " (up is fairer)" : about.alarm === "high" ? " (down is fairer)" : ""} against ranking quality, day by day.`), box,
    rowsBehind("These days as a table", "quality", ["batch", doc.labels[chosen.label].label, doc.labels[other].label],
      points.map((point) => [doc.batches[point.batch], point.found.value, point.x]),
      points.map((point) => [doc.batches[point.batch], digits(point.found.value), digits(point.x)]).reverse()));
}

function qualityFinding(quality, columns, batch) {
  const usual = usualBefore(quality, batch);
  const value = raw(quality, batch);
  if (!usual || value === null) return "Fairness against quality";
  if (isHeldBack()) return "Fairness and quality";
  if (!usual.moved(value)) return "Quality as usual";
  const fell = value < usual.center;
  const bad = at(columns, batch)?.status === "breach";
  if (bad) return fell ? "Quality fell with it" : "Quality rose while fairness fell";
  return fell ? "Quality fell" : "Quality rose";
}
