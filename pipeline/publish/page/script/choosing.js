// What is shown, as choosers and the address say.

function fill(select, options, value) {
  select.replaceChildren(...options.map(([key, text]) => {
    const option = element("option", { value: String(key) }, text);
    option.selected = String(key) === String(value);
    return option;
  }));
}

function fillChoosers() {
  fill(byId("choose-slice"), doc.slices.map((each, n) => [n, sliceName(each)]), chosen.slice);
  fill(byId("choose-attribute"), doc.attributes.map((name, n) => [n, attributeName(name)]), chosen.attribute);
  const labels = doc.labels.map((score, n) => ({ score, n })).filter(({ n }) =>
    doc.slices.some((_, slice) => seriesOf(slice, chosen.attribute, n)));
  const place = byId("choose-metric");
  const main = labels.filter(({ score }) => score.main);
  const others = labels.filter(({ score }) => !score.main);
  place.replaceChildren(...[["Main scores", main], ["Other aggregations", others]]
    .filter(([, found]) => found.length)
    .map(([name, found]) => element("optgroup", { label: name }, ...found.map(({ score, n }) => {
      const option = element("option", { value: String(n) }, score.label);
      option.selected = n === chosen.label;
      return option;
    }))));
  const batches = doc.batches.map((name, n) => [n, doc.scored[n] && doc.counts.breach[n]
    ? `${name} ${LOOKS.breach.symbol} ${count(doc.counts.breach[n], "breach", "breaches")}`
    : `${name}${doc.scored[n] ? "" : ` ${verdict(doc.states[n])}`}`]).reverse();
  fill(byId("choose-batch"), batches.filter(([n]) => n >= doc.extent.heat_from), chosen.batch);
  const total = doc.batches.length;
  fill(byId("choose-period"), [...PERIODS.filter((n) => n < total).map((n) => [n, `last ${n} batches`]),
    [0, `all ${count(total, "batch", "batches")}`]], chosen.period);
}

const REDRAW = {
  batch: [drawHeat, drawTrend, drawChanges],
  slice: [drawHeat, drawTrend, drawGroups, drawQuality],
  label: [drawHeat, drawTrend, drawGroups, drawQuality],
  attribute: [drawHeat, drawTrend, drawGroups, drawQuality, drawLists],
  period: [drawTrend, drawGroups, drawQuality],
};
const EVERYTHING = [
  drawHeat, drawTrend, drawChanges, drawGroups, drawCalendar, drawQuality, drawLists,
];
let queue = Promise.resolve();
let waiting = 0;

// One after the other, so that what was asked for last stands at the end.
function redraw(parts) {
  const focused = document.activeElement?.closest?.("button.cell")?.dataset;
  document.documentElement.dataset.ready = "no";
  waiting += 1;
  queue = queue.then(async () => {
    for (const draws of parts) await draws();
    if (focused) {
      [...document.querySelectorAll("button.cell")].find((cell) =>
        cell.dataset.n === focused.n && cell.dataset.label === focused.label)?.focus({ preventScroll: true });
    }
    waiting -= 1;
    if (!waiting) document.documentElement.dataset.ready = "yes";
  });
  return queue;
}

function choose(changes) {
  Object.assign(chosen, changes);
  if (!seriesOf(chosen.slice, chosen.attribute, chosen.label)) {
    const label = doc.labels.findIndex((_, n) => seriesOf(chosen.slice, chosen.attribute, n));
    if (label >= 0) {
      chosen.label = label;
      changes = { ...changes, label };
    }
  }
  fillChoosers();
  remember();
  return redraw(new Set(Object.keys(changes).flatMap((key) => REDRAW[key] ?? [])));
}

function remember() {
  const said = new URLSearchParams({
    score: doc.labels[chosen.label].label,
    attribute: doc.attributes[chosen.attribute] ?? "",
    slice: doc.slices[chosen.slice][0],
    value: doc.slices[chosen.slice][1],
    batch: doc.batches[chosen.batch],
  });
  history.replaceState(null, "", `#${said}`);
}

// What an address asks for, of what there is.
function asked(text) {
  const said = new URLSearchParams(text.replace(/^#/, ""));
  const found = {};
  const pick = (key, n) => {
    if (n >= 0) found[key] = n;
  };
  if (said.has("score")) pick("label", doc.labels.findIndex((each) => each.label === said.get("score")));
  if (said.has("attribute")) pick("attribute", doc.attributes.indexOf(said.get("attribute") || null));
  if (said.has("slice")) {
    pick("slice", doc.slices.findIndex(([name, value]) => name === said.get("slice") && value === (said.get("value") ?? WHOLE)));
  }
  if (said.has("batch")) pick("batch", doc.batches.indexOf(said.get("batch")));
  return found;
}

function firstChoice() {
  chosen.batch = doc.newest ?? doc.batches.length - 1;
  chosen.period = doc.batches.length > PERIODS[1] ? PERIODS[1] : 0;
  const grave = doc.series
    .filter(([slice]) => slice === 0)
    .map(([, attribute, label, columns]) => ({ attribute, label,
      grouped: index.groups.has(`0|${attribute}|${doc.metric_of[label]}`),
      code: at(columns, chosen.batch)?.code ?? ".",
      breaches: [...columns.status.slice(-31)].filter((code) => code === "b").length }))
    .sort((a, b) => (b.code === "b") - (a.code === "b") || b.grouped - a.grouped
      || b.breaches - a.breaches || a.attribute - b.attribute || a.label - b.label)[0];
  if (grave) Object.assign(chosen, { attribute: grave.attribute, label: grave.label });
}
