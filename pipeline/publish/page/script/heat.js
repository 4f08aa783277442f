// The heat map: scores by slices, a button each.

function shade(score, value) {
  const { fairest, low, high } = score;
  if (fairest === null || low === null || high === null || value === null) return "";
  const reach = Math.max(high - fairest, fairest - low);
  if (!(reach > 0)) return "";
  return `shade-${Math.min(SHADES, Math.floor((Math.abs(value - fairest) / reach) * (SHADES + 1)))}`;
}

function heatRows() {
  const rows = [];
  for (const attribute of [chosen.attribute, doc.attributes.indexOf(null)]) {
    if (attribute < 0 || rows.some((row) => row.attribute === attribute)) continue;
    doc.labels.forEach((score, label) => {
      if (score.main && seriesOf(0, attribute, label)) rows.push({ attribute, label, score });
    });
  }
  return rows;
}

// Slices with breaches first, then as they come: most lists first.
function heatSlices(rows) {
  const breaches = doc.slices.map((_, slice) => rows.filter(({ attribute, label }) => {
    const columns = seriesOf(slice, attribute, label);
    return columns && at(columns, chosen.batch)?.status === "breach";
  }).length);
  const order = doc.slices.map((_, n) => n).slice(1);
  if (order.length > SLICES_A_PAGE) order.sort((a, b) => breaches[b] - breaches[a] || a - b);
  else order.sort((a, b) => (sliceName(doc.slices[a]) < sliceName(doc.slices[b]) ? -1 : 1));
  return order;
}

function heatCell(row, slice) {
  const columns = seriesOf(slice, row.attribute, row.label);
  const found = columns ? at(columns, chosen.batch) : null;
  const name = `${row.score.label}, ${sliceName(doc.slices[slice])}`;
  if (!found) return element("td", { class: "none" }, element("span", { class: "unseen" }, `${name}: `), "–");
  const look = LOOKS[found.status];
  const { value } = found.judged ?? found;
  const said = value === null ? "none" : digits(value);
  const worst = found.worst ? `, ${found.worst} worst off` : "";
  const button = element(
    "button",
    {
      type: "button",
      class: `cell ${found.status} ${found.status === "not_judged" ? shade(row.score, found.value) : ""}`,
      data: { label: row.score.label, slice: doc.slices[slice].join("="), n: String(slice) },
      title: `${name}: ${said}, ${look.word}${worst}${found.why ? ` (${found.why})` : ""}${found.sure ? `. ${found.sure}` : ""}`,
      "aria-label": `${name}: ${said}, ${look.word}${worst}`,
      "aria-pressed": String(slice === chosen.slice && row.label === chosen.label
        && row.attribute === chosen.attribute),
    },
    element("span", { class: "number" }, said),
    element("span", { class: "symbol", "aria-hidden": "true" },
      found.status === "not_judged" ? "" : ` ${look.symbol}`),
  );
  button.addEventListener("click", () => {
    choose({ slice, label: row.label, attribute: row.attribute });
    byId("trend").scrollIntoView({ block: "nearest" });
  });
  return element("td", {}, button);
}

function drawHeat() {
  const place = document.querySelector('[data-chart="heat"]');
  const rows = heatRows();
  const order = heatSlices(rows);
  const pages = Math.max(1, Math.ceil(order.length / SLICES_A_PAGE));
  chosen.slices = Math.min(chosen.slices, pages - 1);
  const first = chosen.slices * SLICES_A_PAGE;
  const shown = [0, ...order.slice(first, first + SLICES_A_PAGE)];
  const head = element("tr", {},
    element("th", { scope: "col" }, "score"),
    ...shown.map((slice) => {
      const [name, value] = doc.slices[slice];
      return slice === 0
        ? element("th", { scope: "col" }, "whole batch")
        : element("th", { scope: "col", title: `${name}: ${value}` },
          element("span", { class: "of" }, short(name, 24)), ` ${short(value, 24)}`);
    }));
  byId("h-heat").textContent = `Scores of ${doc.batches[chosen.batch]} by slice`;
  const body = rows.map((row) => element("tr", {},
    element("th", { scope: "row", title: row.score.title ?? "" },
      ...broken(row.score.label),
      ...(row.attribute !== chosen.attribute ? [element("span", { class: "of" }, " without groups")] : [])),
    ...shown.map((slice) => heatCell(row, slice))));
  const batch = doc.batches[chosen.batch];
  place.replaceChildren(element("table", { class: "heat" },
    element("caption", { class: "unseen" }, `Scores of ${batch}, ${attributeName(doc.attributes[chosen.attribute])}, by slice`),
    element("thead", {}, head),
    element("tbody", {}, ...body)));
  drawPager(order.length, first, pages);
  const hidden = doc.extent.slices_left_out
    ? ` ${count(doc.extent.slices_left_out, "smaller slice")} of the history ${doc.extent.slices_left_out === 1 ? "is" : "are"} not on this page.` : "";
  note("heat", "Choose a cell to see its course below. Grey is stronger the further from fair, "
    + `where no threshold is set.${hidden}`);
  if (!rows.length) place.replaceChildren(element("p", { class: "nothing" }, `${batch} has no scores.`));
}

function drawPager(slices, first, pages) {
  const pager = byId("pager");
  pager.hidden = pages < 2;
  if (pages < 2) return;
  const button = (text, page) => {
    const found = element("button", { type: "button" }, text);
    found.disabled = page < 0 || page >= pages;
    found.addEventListener("click", () => {
      chosen.slices = page;
      drawHeat();
    });
    return found;
  };
  const last = Math.min(first + SLICES_A_PAGE, slices);
  pager.replaceChildren(
    button("Earlier slices", chosen.slices - 1),
    element("span", { role: "status" },
      `Slices ${first + 1} to ${last} of ${slices}, those with breaches first`),
    button("Further slices", chosen.slices + 1),
  );
}
