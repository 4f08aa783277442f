// The data, what of it is chosen, and how it is looked up.

const WHOLE = "all";
const SIGNS = { breach: "✕", composition: "≠", insufficient: "?", gated: "⊘", undefined: "∅", ok: "✓", not_judged: "" };
const STATUS_WORDS = { breach: "beyond its limit", composition: "explained by chance", insufficient: "unsure",
  gated: "held back", undefined: "no value", ok: "within its limit", not_judged: "no limit" };
const STATUS_CLASS = { breach: "bad", insufficient: "unsure", undefined: "unsure", gated: "held", composition: "mixed" };
// A reversal that is a breach has the sign of one.
const lookOf = (said) => (said?.sign === "✕" ? "bad" : STATE_CLASS[said?.state]);
const STATE_CLASS = { new_breach: "bad", breach: "bad", insufficient: "unsure", undefined: "unsure", gated: "held", refused: "held" };
const LINE_BATCHES = 31;
const BAND_BATCHES = 62;
const chosen = { batch: 0, slice: 0, attribute: 0, label: 0, explicit: false };
let doc = null;
let index = null;

const byId = (id) => document.getElementById(id);
const part = (name) => document.querySelector(`[data-part="${name}"]`);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function indexed(data) {
  const series = new Map();
  for (const [slice, attribute, label, columns] of data.series) series.set(`${slice}|${attribute}|${label}`, columns);
  const groups = new Map();
  for (const [slice, attribute, metric, group, columns] of data.group_series) {
    const key = `${slice}|${attribute}|${metric}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push({ group, columns });
  }
  return { series, groups };
}

const seriesOf = (slice, attribute, label) => index.series.get(`${slice}|${attribute}|${label}`);
const groupsOf = (slice, attribute, metric) => index.groups.get(`${slice}|${attribute}|${metric}`) ?? [];
const noGroups = () => doc.attributes.findIndex(([name]) => name === null);

// What a series says of a batch, as it was judged; null where it has no score.
function at(columns, batch) {
  const n = columns ? batch - columns.from : -1;
  if (n < 0 || n >= columns.status.length || columns.status[n] === ".") return null;
  const judged = columns.judged?.[batch];
  const worst = columns.worst ? columns.worst[n] : -1;
  return {
    value: judged ? judged[0] : columns.value[n],
    lower: judged ? judged[1] : columns.lower?.[n] ?? null,
    upper: judged ? judged[2] : columns.upper?.[n] ?? null,
    status: doc.codes[columns.status[n]],
    worst,
    assured: columns.assured?.includes(batch) ?? false,
    why: columns.why && batch in columns.why ? doc.reasons[columns.why[batch]] : "",
    ...limitsAt(columns, batch),
  };
}

function limitsAt(columns, batch) {
  let found = { least: null, most: null };
  for (const [from, least, most] of columns?.limits ?? []) if (from <= batch) found = { least, most };
  return found;
}

const limitOf = ({ least, most }) => least ?? most;

// How far a score is within its limit, as a share of the limit's distance from fair; null without one.
function margin(found, about) {
  const limit = limitOf(found);
  if (limit === null || found.value === null) return null;
  const within = found.least !== null ? found.value - limit : limit - found.value;
  const reach = about.fairest === null ? 1 : Math.abs(limit - about.fairest);
  return within / (reach || 1);
}

// The value of a series in a batch, of all groups, as trends follow it.
function raw(columns, batch) {
  const n = columns ? batch - columns.from : -1;
  return n >= 0 && n < columns.value.length ? columns.value[n] : null;
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// The value of a series in a batch as it was judged.
const judgedValue = (columns, batch) => (columns?.judged && batch in columns.judged ? columns.judged[batch][0] : raw(columns, batch));

// What is usual before a batch, by the rule of v_usual: the median of the batches before, of the same
// release and without gated ones, and how far chance goes; null with too few of them.
function usualBefore(columns, batch, width = 0) {
  const { before, least, far } = doc.usual;
  const values = [];
  let looked = 0;
  const from = Math.max(columns ? columns.from : batch, ...doc.releases.map(([at]) => at).filter((at) => at <= batch));
  for (let n = batch - 1; n >= from && looked < before; n -= 1) {
    if (!doc.scored[n] || doc.gated.includes(n)) continue;
    looked += 1;
    const value = judgedValue(columns, n);
    if (value !== null) values.push(value);
  }
  if (values.length < least) return null;
  const center = median(values);
  const spread = far * median(values.map((value) => Math.abs(value - center)));
  const reach = Math.max(spread, width / 2);
  return { center, reach, count: values.length, moved: (value) => Math.abs(value - center) > reach + 1e-9 * Math.abs(center) };
}

// The batch whose scores are shown: the chosen one, or the newest before it that has any.
function shownBatch() {
  if (doc.scored[chosen.batch]) return chosen.batch;
  const said = doc.conclusions[chosen.batch]?.shown;
  if (said !== null && said !== undefined) return said;
  for (let n = chosen.batch; n >= 0; n -= 1) if (doc.scored[n]) return n;
  return null;
}

// The batches that lines are drawn over: a month with the chosen one in it.
function period(most = LINE_BATCHES) {
  const all = doc.batches.length;
  const until = Math.min(all, Math.max(all - most, 0) <= chosen.batch ? all : chosen.batch + Math.ceil(most / 2));
  const from = Math.max(0, until - most);
  return Array.from({ length: until - from }, (_, n) => from + n);
}
