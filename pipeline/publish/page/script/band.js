// The band of days: how many scores each has beyond its limit; it chooses the day.

const TALLEST = 34;
const FEWEST_COLUMNS = 15;

// How a batch looks in the band: its class, its sign, and what is said of it.
function standing(batch) {
  const said = doc.conclusions[batch];
  const breaches = doc.counts.breach[batch];
  if (!doc.scored[batch]) return { look: lookOf(said) ?? "gap", sign: said?.sign ?? "○", breaches: 0, text: said?.word ?? "no data" };
  if (breaches) return { look: "bad", sign: "✕", breaches, text: `${count(breaches, "score")} beyond ${breaches === 1 ? "its limit" : "their limits"}` };
  if (doc.counts.gated[batch]) return { look: "held", sign: "⊘", breaches, text: "held back" };
  const unsure = doc.counts.insufficient[batch];
  if (unsure && STATE_CLASS[said?.state] === "unsure") return { look: "unsure", sign: "?", breaches, text: `${count(unsure, "score")} unsure` };
  if (said?.state === "reversal") return { look: "", sign: "⇄", breaches, text: "another group loses" };
  return { look: "", sign: "", breaches, text: said?.state === "no_limits" ? "scored, no limits" : "all within limits" };
}

function bar({ look, sign, breaches }, most) {
  const height = breaches ? 8 + (TALLEST - 8) * (breaches / most) : null;
  return [
    ...(sign && look !== "gap" ? [element("em", {}, element("b", {}, breaches ? `${sign} ` : sign), breaches ? String(breaches) : "")] : []),
    element("i", height ? { place: { height: `${height.toFixed(1)}px` } } : {}),
  ];
}

function drawBand() {
  const longer = overview();
  const batches = period(longer ? LINE_BATCHES : BAND_BATCHES);
  const most = Math.max(1, ...doc.counts.breach);
  const names = batches.map((batch) => doc.batches[batch]);
  byId("h-days").replaceChildren(name(spanText(names)));
  const flags = new Map(doc.releases);
  const cells = batches.map((batch) => {
    const found = standing(batch);
    const date = dateOf(doc.batches[batch]);
    const text = !date ? doc.batches[batch] : date.hour ?? String(date.day);
    const release = flags.get(batch);
    return element("a", { href: address({ batch }), class: found.look, "data-key": `day-${batch}`,
      "aria-current": batch === chosen.batch ? "date" : null,
      "aria-label": `${longDay(doc.batches[batch])}: ${found.text}${release ? `; release ${release}` : ""}`,
      title: `${longDay(doc.batches[batch])}: ${found.text}${release ? `; release ${release}` : ""}` },
    ...(release ? [element("span", { class: "rel" }, "⚑")] : []), ...bar(found, most), element("span", { class: "n" }, name(text)));
  });
  const coming = batches.length === doc.batches.length ? doc.due.slice(0, Math.max(0, FEWEST_COLUMNS - batches.length)) : [];
  const slots = coming.filter(([batch]) => !doc.batches.includes(batch)).map(([batch]) =>
    element("span", { class: "slot" }, element("i"), element("span", { class: "n" }, dateOf(batch)?.hour ?? String(dateOf(batch)?.day ?? ""))));
  const columns = Math.max(FEWEST_COLUMNS, cells.length + slots.length);
  drawKey(batches, slots.length);
  byId("band").replaceChildren(
    ...(longer ? [overviewBand(longer)] : []),
    element("nav", { class: "band", "aria-label": unitOf(doc.batches) === "hour" ? "Hours" : "Days", place: { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } }, ...cells, ...slots),
    ...alertSpans(batches, columns), ...alsoToKnow());
}

function overviewBand({ unit, parts }) {
  const sums = parts.map(({ batches }) => batches.reduce((sum, batch) => sum + doc.counts.breach[batch], 0));
  const most = Math.max(1, ...sums);
  return element("nav", { class: "band over", "aria-label": `All ${unit}s` }, ...parts.map((each, n) => {
    const worst = [...each.batches].sort((a, b) => doc.counts.breach[b] - doc.counts.breach[a] || b - a)[0];
    const scored = each.batches.some((batch) => doc.scored[batch]);
    const look = sums[n] ? "bad" : scored ? "" : "gap";
    const text = `${capital(unit)} ${each.text}: ${sums[n] ? `${count(sums[n], "breach", "breaches")} in all` : scored ? "no breach" : "no data"}`;
    return element("a", { href: address({ batch: worst }), class: look, "aria-label": text, title: text, "data-key": `part-${each.key}`,
      "aria-current": each.batches.includes(chosen.batch) ? "true" : null },
    element("i", sums[n] ? { place: { height: `${(5 + 25 * sums[n] / most).toFixed(1)}px` } } : {}), element("span", { class: "n" }, each.text));
  }));
}

function drawKey(batches, coming) {
  const looks = batches.map(standing);
  const releases = doc.releases.filter(([batch]) => batches.includes(batch)).map(([batch, text]) => `${text}, ${shortDay(doc.batches[batch])}`);
  byId("key").replaceChildren(
    ...(doc.newest === null ? [] : [element("span", {}, element("i"), [doc.counts.ok, doc.counts.breach, doc.counts.insufficient].some((counts) => counts.some(Boolean)) ? "within limits" : "scored")]),
    ...(looks.some(({ look }) => look === "bad") ? [element("span", { class: "bad" }, "✕ number of scores beyond their limit")] : []),
    ...(looks.some(({ look }) => look === "gap") ? [element("span", { class: "gap" }, element("i"), "no data")] : []),
    ...(looks.some(({ look }) => look === "held") ? [element("span", { class: "held" }, "⊘ held back, ! refused")] : []),
    ...(coming ? [element("span", {}, "outlined: still to come")] : []),
    element("span", { class: "releases" }, "⚑ release: ", releases.length ? name(releases.slice(0, 3).join("; ")) : "none marked"));
}
