// A square per batch; one without scores is hollow.

function gravest(batch) {
  if (!doc.scored[batch]) return doc.states[batch];
  return Object.values(VERDICT_OF).find((status) => doc.counts[status][batch] > 0) ?? "not_judged";
}

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function placed(batches) {
  const dates = batches.map((batch) => {
    const name = doc.batches[batch];
    return /^\d{4}-\d\d-\d\d$/.test(name) ? Date.parse(`${name}T00:00:00Z`) : NaN;
  });
  if (dates.some(Number.isNaN)) {
    return batches.map((batch, n) => ({ batch, column: doc.batches[batches[n - (n % 7)]], row: String((n % 7) + 1) }));
  }
  return batches.map((batch, n) => {
    const day = (new Date(dates[n]).getUTCDay() + 6) % 7;
    const monday = new Date(dates[n] - day * 86400000).toISOString().slice(0, 10);
    return { batch, column: monday, row: WEEKDAYS[day] };
  });
}

async function drawCalendar() {
  const place = document.querySelector('[data-chart="calendar"]');
  const most = 7 * Math.max(4, Math.floor((place.clientWidth - 50) / 22));
  const batches = doc.batches.map((_, n) => n).slice(-most);
  const rows = placed(batches).map(({ batch, column, row }) => {
    const state = gravest(batch);
    const breaches = doc.counts.breach[batch];
    return { column, row, state, full: doc.scored[batch], symbol: LOOKS[state].symbol,
      Batch: doc.batches[batch], State: verdict(state), Breaches: doc.scored[batch] ? String(breaches) : "" };
  });
  const byDay = WEEKDAYS.filter((day) => rows.some((row) => row.row === day));
  const missing = batches.filter((batch) => !doc.scored[batch]).length;
  const breached = batches.filter((batch) => doc.counts.breach[batch] > 0).length;
  const left = doc.batches.length - batches.length;
  note("calendar", `${count(batches.length, "batch", "batches")}: ${breached} with a breach, ${missing} without scores (hollow).`
    + (left ? ` ${count(left, "earlier batch", "earlier batches")} not drawn.` : ""));
  showTable("calendar", ["batch", "state", "breaches"],
    rows.map((row) => [row.Batch, row.State, row.Breaches]).reverse(), "Batches, newest first");
  const spec = structuredClone(doc.charts.calendar);
  for (const layer of spec.layer) layer.encoding.y.sort = byDay.length ? WEEKDAYS : null;
  await draw("calendar", rows, `${breached} of ${count(batches.length, "batch", "batches")} with a breach, ${missing} missing.`,
    { layer: spec.layer });
}
