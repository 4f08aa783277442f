// Alerts as spans under the days, with their worst and latest reading; and scores of several days.

const KINDS = { gate: "data unlike other days", night: "no scores", missing: "a group is missing", release: "changed with a release",
  breach: "beyond its limit", window: "beyond its limit over several days", flip: "another group loses", shift: "moved beyond chance",
  improvement: "fairer than usual" };
const SPANS = 6;

function alertTitle(alert) {
  const what = capital(alert.of);
  const where = alert.whole ? "" : `, ${alert.slice}`;
  const kind = KINDS[alert.kind] ?? alert.kind.replaceAll("_", " ");
  const state = alert.state === "open" ? "open" : `ended ${plainDay(alert.resolved ?? alert.last_seen)}`;
  return what ? `${what}${where}: ${kind}, ${state}` : `${capital(kind)}, ${state}`;
}

// An alert opens its own score, slice and day: that of its worst reading.
function alertAddress(alert) {
  const day = doc.batches.indexOf(alert.worst_batch ?? alert.last_seen);
  const batch = day >= 0 ? day : chosen.batch;
  return alert.score ? scoreAddress(...alert.score, batch) : address({ batch, explicit: false });
}

const isBad = (alert) => alert.kind === "breach" || alert.kind === "window";

function alertSpans(batches, columns) {
  const last = batches[batches.length - 1];
  const places = doc.alerts.map((alert) => {
    const from = doc.batches.indexOf(alert.opened);
    const until = alert.state === "open" ? last : doc.batches.indexOf(alert.last_seen);
    return { alert, from: Math.max(from, batches[0]), until: Math.min(until, last), seen: from >= 0 && from <= last && until >= batches[0] };
  }).filter(({ seen }) => seen).sort((a, b) => isBad(b.alert) - isBad(a.alert));
  const shown = places.slice(0, SPANS).map(({ alert, from, until }) => {
    const start = ((from - batches[0]) / columns) * 100;
    const wide = ((until - from + 1) / columns) * 100;
    const right = start > 50;
    const line = element("i", { place: { width: pct(wide) } });
    const link = element("a", { href: alertAddress(alert), "data-alert": alert.alert, "data-key": `alert-${alert.alert}` }, name(alertTitle(alert)));
    return element("div", { class: isBad(alert) ? "span bad" : "span",
      place: right ? { paddingRight: pct(100 - start - wide), justifyContent: "flex-end" } : { paddingLeft: pct(start) } },
    ...(right ? [link, line] : [line, link]));
  });
  return shown.length ? [element("div", { class: "spans" }, ...shown)] : [];
}

function reading(alert, value, batch, loser) {
  const about = alert.score ? doc.labels[alert.score[2]] : {};
  const who = loser >= 0 ? `, ${groupName(loser)} worst off` : "";
  return value === null || value === undefined ? "" : `${textOf(about)(value)}${who}${batch ? ` (${plainDay(batch)})` : ""}`;
}

// All alerts with their readings, and what several days say together.
function alsoToKnow() {
  const found = [];
  if (doc.alerts.length) {
    found.push(element("details", { class: "needs-script" },
      element("summary", {}, `${count(doc.alerts.length, "alert")} in words: worst and latest reading`),
      element("ol", { class: "told" }, ...doc.alerts.map((alert) => {
        const worst = reading(alert, alert.worst_value, alert.worst_batch, alert.loser);
        const latest = reading(alert, alert.latest_value, alert.last_seen, alert.latest_loser);
        const readings = [worst && `Worst: ${worst}.`, latest && alert.worst_batch !== alert.last_seen && `Latest: ${latest}.`].filter(Boolean).join(" ");
        return element("li", {}, name(alertTitle(alert)), " ",
          element("a", { href: alertAddress(alert), "data-show": alert.alert }, "Show it"),
          element("span", { class: "small" }, `${readings} ${alert.opened === alert.last_seen ? plainDay(alert.opened) : `${plainDay(alert.opened)} to ${plainDay(alert.last_seen)}`}.`
            + `${alert.acknowledged_by ? ` Acknowledged by ${alert.acknowledged_by}.` : ""} Alert ${alert.alert}.`));
      })),
      ...(doc.alerts.length > 30 ? [small("Older ones: ", element("code", {}, "evenrank alerts --all"), ".")] : [])));
  }
  if (doc.windows.length) {
    found.push(element("details", {},
      element("summary", {}, `The last ${listed([...new Set(doc.windows.map(({ days }) => days))].map(String))} days together`),
      element("ol", { class: "told" }, ...doc.windows.map((each) => element("li", {},
        name(`${capital(scoreName(each.label, each.attribute))}, ${each.days} days to ${plainDay(each.last)}: `),
        `${SIGNS[each.status]} ${textOf(doc.labels[each.label])(each.value)} (${span(each.lower, each.upper, textOf(doc.labels[each.label]))}), ${STATUS_WORDS[each.status]}`,
        ...(each.worst >= 0 ? [", ", name(groupName(each.worst)), " worst off"] : []))))));
  }
  return found;
}
