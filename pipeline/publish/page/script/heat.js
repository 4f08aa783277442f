// Scores by slice: those with a limit first, the rest folded by what they ask.

const SLICES_A_PAGE = 7;
const NAMED = 3;
let slicePage = 0;

// Every score of the whole batch and of any slice, that has a row on the shown day.
function scoresAt(batch) {
  const rows = new Map();
  for (const [slice, attribute, label, columns] of doc.series) {
    const found = at(columns, batch);
    if (!found) continue;
    const key = `${attribute}|${label}`;
    if (!rows.has(key)) rows.set(key, { attribute, label, about: doc.labels[label], cells: new Map() });
    rows.get(key).cells.set(slice, found);
  }
  return [...rows.values()];
}

// Most breaches first, then the one closest to its limit.
function judgedFirst(rows) {
  for (const row of rows) {
    const cells = [...row.cells.values()];
    row.judged = cells.some(({ status }) => status !== "not_judged");
    row.breaches = cells.filter(({ status }) => status === "breach").length;
    row.margin = row.cells.has(0) ? margin(row.cells.get(0), row.about) : null;
    row.computed = cells.some(({ value }) => value !== null);
  }
  const order = (row) => row.margin ?? Infinity;
  return rows.filter((row) => row.judged).sort((a, b) => b.breaches - a.breaches || order(a) - order(b)
    || a.attribute - b.attribute || a.label - b.label);
}

// Slices in columns: as they are where they fit; else those with breaches first, page by page.
function sliceColumns(judged) {
  const all = doc.slices.map((_, n) => n).slice(1);
  const byName = (a, b) => (doc.slices[a][0] < doc.slices[b][0] ? -1 : doc.slices[a][0] > doc.slices[b][0] ? 1
    : sliceName(a) < sliceName(b) ? -1 : 1);
  if (all.length <= SLICES_A_PAGE) return { shown: all.sort(byName), pages: 1, all };
  const countOf = (status) => new Map(all.map((slice) => [slice, judged.filter((row) => row.cells.get(slice)?.status === status).length]));
  const breaches = countOf("breach");
  const unsure = countOf("insufficient");
  all.sort((a, b) => breaches.get(b) - breaches.get(a) || unsure.get(b) - unsure.get(a) || a - b);
  const pages = Math.ceil(all.length / SLICES_A_PAGE);
  slicePage = Math.min(slicePage, pages - 1);
  return { shown: all.slice(slicePage * SLICES_A_PAGE, (slicePage + 1) * SLICES_A_PAGE), pages, all };
}

function heatHead(slices, days) {
  const groupsOfSlices = [];
  for (const slice of slices) {
    const last = groupsOfSlices[groupsOfSlices.length - 1];
    if (last?.name === doc.slices[slice][0]) last.span += 1;
    else groupsOfSlices.push({ name: doc.slices[slice][0], span: 1 });
  }
  const cell = (text, look = null) => element("th", { scope: "col", role: "columnheader", class: look }, text);
  return element("thead", { role: "rowgroup" },
    element("tr", { role: "row" }, element("td", { class: "k" }), element("td", { class: "sp" }), element("td", { class: "lm" }), element("td"),
      ...groupsOfSlices.map((each) => element("th", { class: "grp", scope: "colgroup", colspan: each.span }, name(capital(each.name))))),
    element("tr", { role: "row" }, cell("Score"), cell(days, "sp"), cell("Limit", "lm"), cell("All"), ...slices.map((slice) => cell(name(sliceTitle(slice))))));
}

function heatCell(row, slice, batch) {
  const found = row.cells.get(slice);
  if (!found) return element("td", { role: "cell", class: "none" }, "–");
  const worst = groupName(found.worst);
  const sign = SIGNS[found.status];
  const current = slice === chosen.slice && row.label === chosen.label && row.attribute === chosen.attribute;
  const words = found.status === "not_judged" ? "" : STATUS_WORDS[found.status];
  const text = `${capital(scoreName(row.label, row.attribute))}, ${sliceName(slice)}: ${digits(found.value)}${words ? `, ${words}` : ""}${found.assured ? " (assured)" : ""}${worst ? `, ${worst} worst off` : ""}`;
  return element("td", { role: "cell", class: `c ${slice ? "" : "all"} ${STATUS_CLASS[found.status] ?? ""}` },
    element("a", { href: scoreAddress(slice, row.attribute, row.label, chosen.batch), "data-key": `cell-${row.label}-${row.attribute}-${slice}`,
      "data-label": row.about.label, "data-attribute": doc.attributes[row.attribute][0], "data-slice": doc.slices[slice].slice(0, 2).join("="),
      "data-h": slice ? sliceTitle(slice) : "All", "aria-current": current ? "true" : null, title: `${text}${found.lower === null ? "" : `; ${span(found.lower, found.upper)}`}${found.why ? `; ${found.why}` : ""}` },
    element("span", { class: "value" }, digits(found.value)), ...(found.status === "insufficient" ? [" ", element("u", {}, "unsure")] : []),
    element("small", {}, sign ? `${sign} ` : "", worst ? name(worst) : sign ? STATUS_WORDS[found.status] : " ")));
}

function spark(row, batches) {
  const columns = seriesOf(0, row.attribute, row.label);
  const values = batches.map((batch) => raw(columns, batch));
  const limit = limitOf(limitsAt(columns, batches[batches.length - 1]));
  const [low, high] = rangeOf([...values, limit]);
  const scale = scales(batches.length, low, high);
  const svg = drawing("svg", { class: "spark", viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (limit !== null) svg.append(drawing("line", { class: "lim", x1: 0, x2: 100, y1: scale.y(limit), y2: scale.y(limit) }));
  linesOf(svg, values, scale, "ln");
  batches.forEach((batch, n) => {
    if (at(columns, batch)?.status !== "breach") return;
    svg.append(drawing("line", { class: "tick", x1: scale.x(n), x2: scale.x(n) + 0.01, y1: scale.y(values[n]), y2: scale.y(values[n]) }));
  });
  return svg;
}

function heatTable(rows, slices, batch, caption) {
  const all = period();
  const batches = all.slice(0, all.indexOf(chosen.batch) + 1);
  return element("table", { class: "heat", role: "table" }, element("caption", { class: "hide" }, caption),
    heatHead(slices, count(batches.length, unitOf(doc.batches), unitOf(doc.batches) === "batch" ? "batches" : `${unitOf(doc.batches)}s`)),
    element("tbody", { role: "rowgroup" }, ...rows.map((row) => element("tr", { role: "row" },
      element("th", { scope: "row", role: "rowheader", class: "k" }, name(capital(scoreName(row.label, row.attribute))), element("small", {}, element("code", {}, row.about.label))),
      element("td", { role: "cell", class: "sp" }, seriesOf(0, row.attribute, row.label) ? spark(row, batches) : ""),
      element("td", { role: "cell", class: "lm", "data-h": "Limit" }, limitText(limitsOfRow(row)) || "none"),
      ...[0, ...slices].map((slice) => heatCell(row, slice, batch))))));
}

function limitsOfRow(row) {
  const found = [...row.cells.values()].find((each) => limitOf(each) !== null);
  return found ?? { least: null, most: null };
}

function drawHeat() {
  const batch = shownBatch();
  const place = part("heat");
  const rows = batch === null ? [] : scoresAt(batch);
  if (!rows.length) {
    byId("h-heat").textContent = "Scores by slice";
    place.replaceChildren(small(batch === null ? "There are no scores yet." : `The scores of ${plainDay(doc.batches[batch])} are not on this page.`));
    return;
  }
  const judged = judgedFirst(rows);
  const first = judged.length ? judged : leastEqual(rows);
  const { shown, pages, all } = sliceColumns(judged);
  byId("h-heat").replaceChildren(name(heatFinding(judged, batch)));
  place.replaceChildren(small(heatNote(judged, all)), heatTable(first, shown, batch, "Scores by slice, those with a limit first"),
    ...(pages > 1 ? [pager(pages, all.length)] : []), csvOfHeat(rows, batch), ...folds(rows.filter((row) => !first.includes(row) && row.computed), shown, batch), notComputed(rows));
  settle();
}

function heatNote(judged, all) {
  const left = doc.slices_left_out ? ` ${count(doc.slices_left_out, "smaller slice")} of the history are not on this page.` : "";
  if (all.length && shownBatch() < doc.slices_from) return `Of days as old as this one the page holds whole batches only.${left}`;
  if (!judged.length) return `The least equal first. Under each number, the group that got least. No colours: nothing is judged without a limit.${left}`;
  const cells = judged.flatMap((row) => [...row.cells.values()]);
  const within = cells.filter(({ status }) => status === "ok");
  const sure = within.filter(({ assured }) => assured).length;
  return `Scores with a limit, ${judged[0].breaches ? "the most breaches" : "the closest to it"} first. Under each number, the group that got least. `
    + `✕ beyond its limit, ? unsure, ✓ within; without a sign there is no limit.${within.length ? ` Of ${within.length} within, ${sure} are assured: their whole interval is.` : ""}${left}`;
}

function heatFinding(judged, batch) {
  if (!judged.length) return "Scores by slice: nothing is judged without a limit";
  const cells = judged.flatMap((row) => [...row.cells].map(([slice, found]) => ({ row, slice, ...found })));
  const bad = cells.filter(({ status }) => status === "breach");
  if (bad.length) {
    const parts = bad.filter(({ slice }) => slice).sort((a, b) => margin(a, a.row.about) - margin(b, b.row.about));
    const places = [...new Set(parts.map(({ slice }) => sliceTitle(slice)))].slice(0, 2);
    return `Where: ${places.length ? `worst in ${listed(places)}` : "in the whole batch, and in no slice by itself"}`;
  }
  const unsure = cells.filter(({ status }) => status === "insufficient" || status === "undefined").length;
  if (cells.some(({ status }) => status === "gated")) return "Scores of this day, without verdicts";
  const mixed = cells.filter(({ status }) => status === "composition").length;
  if (mixed) return `No breach; ${count(mixed, "score")} beyond the limit as chance would be`;
  return unsure ? `No breach; ${unsure} of ${cells.length} judged scores are unsure` : "Every judged score is within its limit, in every slice";
}

// Without limits: ratios of the whole batch, the least equal first.
function leastEqual(rows) {
  const found = rows.filter((row) => row.about.unit === "percent" && row.cells.get(0)?.value !== null && row.cells.has(0));
  return found.sort((a, b) => a.cells.get(0).value - b.cells.get(0).value).slice(0, 5);
}

// The rest by family; each table is made when it is opened.
function folds(rows, slices, batch) {
  const byFold = new Map();
  for (const row of rows) {
    if (!byFold.has(row.about.fold)) byFold.set(row.about.fold, []);
    byFold.get(row.about.fold).push(row);
  }
  if (!byFold.size) return [];
  return [element("div", { class: "folds" }, ...[...byFold].map(([fold, found]) => {
    const [title, says] = fold.split(": ");
    const details = element("details", { class: "fold" }, element("summary", {}, element("b", {}, title), `${says ? `: ${says}` : ""} (${found.length})`));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(heatTable(found, slices, batch, title));
    });
    if (found.some((row) => row.label === chosen.label && row.attribute === chosen.attribute)) details.open = true;
    return details;
  }))];
}

function notComputed(rows) {
  const reasons = new Map();
  for (const row of rows) {
    if (row.computed) continue;
    const [{ why }] = row.cells.values();
    const key = why || "no value";
    if (!reasons.has(key)) reasons.set(key, new Map());
    reasons.get(key).set(row.about.label, row.about.plain);
  }
  if (!reasons.size) return "";
  return small("Not computed: ", ...[...reasons].flatMap(([why, labels], n) => [n ? "; " : "",
    ...[...labels].slice(0, NAMED).flatMap(([label, plain], k) => [k ? ", " : "", `${plain} (`, element("code", {}, label), ")"]),
    labels.size > NAMED ? ` and ${labels.size - NAMED} more` : "", `: ${why}`]), ".");
}

function pager(pages, slices) {
  const button = (text, page) => {
    const found = element("button", { type: "button", click: () => { slicePage = page; drawHeat(); } }, text);
    found.disabled = page < 0 || page >= pages;
    return found;
  };
  const from = slicePage * SLICES_A_PAGE;
  return element("div", { class: "pager" }, button("Earlier slices", slicePage - 1),
    element("span", { role: "status" }, `Slices ${from + 1} to ${Math.min(from + SLICES_A_PAGE, slices)} of ${slices}, those with breaches first`),
    button("Further slices", slicePage + 1));
}

function csvOfHeat(rows, batch) {
  const cells = rows.flatMap((row) => [...row.cells].map(([slice, found]) => [doc.batches[batch], row.about.label, doc.attributes[row.attribute][0], ...doc.slices[slice].slice(0, 2),
    found.value, found.lower, found.upper, limitOf(found), found.status, doc.groups[found.worst]?.[1] ?? ""]));
  return element("div", { class: "tools" }, csvButton("scores",
    ["batch", "score", "attribute", "slice", "slice_value", "value", "lower", "upper", "limit", "verdict", "worst off"], cells));
}
