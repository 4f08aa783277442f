// One score over batches.

function period() {
  const from = chosen.period ? Math.max(0, doc.batches.length - chosen.period) : 0;
  return Array.from({ length: doc.batches.length - from }, (_, n) => from + n);
}

function gapText(batch) {
  return doc.scored[batch] ? "" : LOOKS[doc.states[batch]]?.symbol ?? "";
}

function stateText(batch) {
  const look = LOOKS[doc.states[batch]];
  return look && !doc.scored[batch] ? verdict(look.name) : "";
}

function releaseText(batch) {
  return doc.releases.filter(([n]) => n === batch).map(([, text]) => text).join("; ");
}

function trendRows(columns) {
  return period().map((batch) => {
    const found = at(columns, batch);
    const row = { batch: doc.batches[batch], Batch: doc.batches[batch] };
    const release = releaseText(batch);
    if (release) Object.assign(row, { release, Release: release });
    const limits = limitsAt(columns, batch);
    row.limit = limits.least ?? limits.most;
    row.Threshold = limitText(limits);
    if (!found) {
      if (gapText(batch)) Object.assign(row, { gap: gapText(batch), State: stateText(batch) });
      return row;
    }
    return Object.assign(row, {
      value: found.value, lower: found.lower, upper: found.upper, noise: found.noise,
      status: found.status, size: batch === chosen.batch ? 170 : found.status === "breach" ? 120 : found.status === "not_judged" ? 25 : 45,
      said: digits((found.judged ?? found).value),
      Judged: found.judged ? `${digits(found.judged.value)}, ${span(found.judged.lower, found.judged.upper)}` : "",
      Value: digits(found.value), Interval: span(found.lower, found.upper),
      "Noise floor": found.noise === null ? "" : digits(found.noise),
      Verdict: verdict(found.status), "Worst off": found.worst, Why: found.why,
      Certainty: found.sure,
      code: found.code,
    });
  });
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// Seven batches in one row: the median, the lowest and highest, and the gravest verdict.
function byWeek(rows) {
  const weeks = [];
  for (let n = 0; n < rows.length; n += 7) {
    const part = rows.slice(n, n + 7);
    const scored = part.filter((row) => row.value !== null && row.value !== undefined);
    const first = part[0].batch;
    const last = part[part.length - 1].batch;
    const week = { batch: first, Batch: `${first} to ${last}` };
    const release = part.map((row) => row.release).filter(Boolean).join("; ");
    if (release) Object.assign(week, { release, Release: release });
    Object.assign(week, { limit: part[part.length - 1].limit, Threshold: part[part.length - 1].Threshold });
    if (!scored.length) {
      if (part.every((row) => row.gap)) Object.assign(week, { gap: part[0].gap, State: part[0].State });
      weeks.push(week);
      continue;
    }
    const values = scored.map((row) => row.value);
    const code = [...GRAVITY].find((each) => scored.some((row) => row.code === each));
    const status = VERDICT_OF[code];
    const gaps = part.filter((row) => row.gap).length;
    weeks.push(Object.assign(week, {
      value: median(values), lower: Math.min(...values), upper: Math.max(...values),
      status, size: status === "breach" ? 110 : status === "not_judged" ? 20 : 35,
      Value: digits(median(values)), Interval: span(Math.min(...values), Math.max(...values)),
      Verdict: verdict(status) + (gaps ? `, ${gaps} missing` : ""),
      "Worst off": scored.find((row) => row.code === code)["Worst off"],
    }));
  }
  return weeks;
}

async function drawTrend() {
  const columns = seriesOf(chosen.slice, chosen.attribute, chosen.label);
  if (!columns) {
    note("trend", "");
    nothing("trend", `${aboutScore()}: there is no such score on this page.`);
    return;
  }
  const days = trendRows(columns);
  const weekly = days.length > MOST_DRAWN;
  const rows = weekly ? byWeek(days) : days;
  const breaches = days.filter((row) => row.status === "breach").length;
  const gaps = days.filter((row) => row.gap).length;
  const last = days.find((row) => row.batch === doc.batches[chosen.batch] && row.status)
    ?? days.findLast((row) => row.status);
  const from = doc.batches[columns.from];
  const said = [
    `${aboutScore()}: ${last ? `${last.said}, ${LOOKS[last.status].word}, in ${last.batch}` : "no value in this period"}.`,
    `${count(breaches, "breach", "breaches")} in ${count(days.length, "batch", "batches")}`
      + `${gaps ? `, ${gaps} missing` : ""}.`,
  ];
  const limits = limitText(limitsAt(columns, doc.batches.length - 1));
  const shown = weekly
    ? "Each mark is seven batches: their median and gravest verdict, lines from lowest to highest."
    : "Lines at the marks: the interval. Dots: what chance alone passes in 5 of 100 batches.";
  const held = columns.from > 0 && doc.extent.cut && days[0].batch < from
    ? ` On this page it goes back to ${from}; the history may hold more.` : "";
  note("trend", `${said.join(" ")} ${limits ? `Dashed: threshold, ${limits}. ` : ""}${shown}${held}`);
  showTable("trend",
    ["batch", "value", weekly ? "lowest to highest" : "interval", "noise floor", "threshold", "verdict", "worst off", "release"],
    rows.map((row) => [row.Batch, row.Value ?? "", row.Interval, row["Noise floor"], row.Threshold,
      row.Verdict ?? row.State ?? "no score", row["Worst off"], row.release]).reverse(),
    `${aboutScore()}, newest first`);
  await draw("trend", rows, said.join(" "));
}
