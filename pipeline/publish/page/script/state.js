// Draws the page from its data: the choosers, the heat map, the charts and the table under each.
// Names from the data become text nodes and values, never markup, paths or code.

const LOOKS = {};
const WHOLE = "all";
const MOST_DRAWN = 400; // batches; more are drawn by week
const SLICES_A_PAGE = 10;
const GROUPS_SHOWN = 12;
const SHADES = 4;
const MOST_LETTERS = 48; // of a name; the tables and the history have it whole
const PERIODS = [31, 92, 366];
const VERDICT_OF = {
  b: "breach", c: "composition", i: "insufficient", g: "gated", u: "undefined", k: "ok", n: "not_judged",
};
const DUE_KNOWN = 40; // coming batches that the page knows of
const GRAVITY = "bcigukn.";

const byId = (id) => document.getElementById(id);
const chosen = { slice: 0, attribute: 0, label: 0, batch: 0, period: 0, slices: 0 };
let doc = null;
let index = null;


// -- reading

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function indexed(data) {
  const series = new Map();
  for (const [slice, attribute, label, columns] of data.series) {
    series.set(`${slice}|${attribute}|${label}`, columns);
  }
  const groups = new Map();
  for (const [slice, attribute, metric, group, columns] of data.group_series) {
    const key = `${slice}|${attribute}|${metric}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push({ group, columns });
  }
  return { series, groups };
}

const seriesOf = (slice, attribute, label) => index.series.get(`${slice}|${attribute}|${label}`);

// What a series says of a batch; null where it has no score.
function at(columns, batch) {
  const n = batch - columns.from;
  if (n < 0 || n >= columns.value.length || columns.status[n] === ".") return null;
  const worst = columns.worst ? columns.worst[n] : -1;
  const limits = limitsAt(columns, batch);
  return {
    value: columns.value[n],
    lower: columns.lower ? columns.lower[n] : null,
    upper: columns.upper ? columns.upper[n] : null,
    noise: columns.noise_limit ? columns.noise_limit[n] : null,
    status: VERDICT_OF[columns.status[n]],
    code: columns.status[n],
    worst: worst >= 0 ? doc.groups[worst] : "",
    judged: judgedAt(columns, batch),
    sure: columns.sure && batch in columns.sure ? doc.reasons[columns.sure[batch]] : "",
    why: columns.why && batch in columns.why ? doc.reasons[columns.why[batch]] : "",
    ...limits,
  };
}

// What the verdict is about, where some groups have too little evidence; null where it is the value.
function judgedAt(columns, batch) {
  if (!columns.judged || !(batch in columns.judged)) return null;
  const [value, lower, upper] = columns.judged[batch];
  return { value, lower, upper };
}

function limitsAt(columns, batch) {
  let found = { least: null, most: null };
  for (const [from, least, most] of columns.limits ?? []) {
    if (from <= batch) found = { least, most };
  }
  return found;
}
