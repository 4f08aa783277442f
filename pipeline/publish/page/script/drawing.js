// Elements, tables and charts; names from the data become text nodes and values only.

function element(name, options = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") found.className = value;
    else if (key === "data") Object.assign(found.dataset, value);
    else if (value !== null && value !== undefined) found.setAttribute(key, value);
  }
  found.append(...children);
  return found;
}

// A label that may be broken before its aggregation.
function broken(label) {
  const dot = label.lastIndexOf(".");
  const parts = dot > 0 && !label.endsWith(")") ? [label.slice(0, dot), label.slice(dot)] : [label];
  return parts.flatMap((part, n) => (n ? [element("wbr"), part] : [part]));
}

function table(columns, rows, caption) {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((cells) =>
    element("tr", {}, ...cells.map((cell, n) =>
      element(n ? "td" : "th", n ? {} : { scope: "row" }, String(cell ?? "")))));
  return element(
    "table", {},
    element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
}

function showTable(name, columns, rows, caption) {
  const place = document.querySelector(`[data-table="${name}"]`);
  place.replaceChildren(table(columns, rows, caption));
}

function note(name, text) {
  document.querySelector(`[data-note="${name}"]`).textContent = text;
}

function nothing(name, text) {
  const place = document.querySelector(`[data-chart="${name}"]`);
  place.dataset.empty = "yes";
  place.removeAttribute("role");
  place.removeAttribute("tabindex");
  place.removeAttribute("aria-label");
  place.replaceChildren(element("p", { class: "nothing" }, text));
  document.querySelector(`[data-table="${name}"]`).replaceChildren();
  place.closest("section").querySelector("details").hidden = true;
}


function tooltip(handler, event, item, value) {
  const box = byId("tooltip");
  if (value === null || value === undefined || value === "" || typeof value !== "object") {
    box.hidden = true;
    return;
  }
  const lines = Object.entries(value).filter(([, text]) => text !== "" && text !== null &&
    text !== undefined && text !== "undefined" && text !== "null");
  box.replaceChildren(...lines.flatMap(([name, text]) => [
    element("dt", {}, name), element("dd", {}, String(text)),
  ]));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const faint = style.getPropertyValue("--line").trim();
  return {
    aria: false,
    background: "transparent",
    font: style.getPropertyValue("font-family"),
    axis: { labelColor: ink, titleColor: ink, tickColor: faint, domainColor: faint,
      gridColor: faint, gridOpacity: 0.6, labelFontSize: 11, titleFontSize: 11,
      titleFontWeight: "normal" },
    header: { labelColor: ink, titleColor: ink },
    view: { stroke: null },
    text: { color: ink, fontSize: 11 },
    rule: { color: ink },
    line: { color: ink, invalid: "break-paths-show-path-domains" },
    area: { invalid: "break-paths-show-path-domains" },
    point: { color: ink, stroke: ink },
    rect: { stroke: ink },
  };
}

const drawn = {};

async function draw(name, rows, label, changes = {}) {
  const place = document.querySelector(`[data-chart="${name}"]`);
  delete place.dataset.empty;
  place.closest("section").querySelector("details").hidden = false;
  const spec = { ...structuredClone(doc.charts[name]), ...changes, datasets: { rows } };
  const result = await window.vegaEmbed(place, spec, {
    actions: false,
    ast: true,
    config: theme(),
    defaultStyle: false,
    logLevel: 1, // errors only
    renderer: "svg",
    tooltip,
  });
  // Vega gives the place a role and a name of its own.
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.tabIndex = 0;
  place.querySelector("svg").setAttribute("aria-hidden", "true");
  drawn[name]?.finalize();
  drawn[name] = result;
  if (!performance.getEntriesByName("first-chart").length) performance.mark("first-chart");
}
