// Elements, tables, addresses and files; names from the data become text nodes only.

const SVG = "http://www.w3.org/2000/svg";

function element(name, options = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") found.className = value;
    else if (key === "place") for (const [side, size] of Object.entries(value)) found.style[side] = size;
    else if (key === "click") found.addEventListener("click", value);
    else found.setAttribute(key, value === true ? "" : value);
  }
  found.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return found;
}

function drawing(name, options = {}, ...children) {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(options)) found.setAttribute(key, value);
  found.append(...children);
  return found;
}

// A name from the data, kept from turning the text around it.
const name = (text, options = {}) => element("bdi", options, text);
const small = (...children) => element("p", { class: "small" }, ...children);
const hidden = (text) => element("span", { class: "hide" }, text);
const pct = (share) => `${share.toFixed(3)}%`;

// The address of the page with these things chosen instead.
function address(changes = {}) {
  const next = { ...chosen, ...changes };
  const said = { batch: doc.batches[next.batch] };
  if (next.explicit) {
    const [slice, value] = doc.slices[next.slice];
    Object.assign(said, { score: doc.labels[next.label].label, attribute: doc.attributes[next.attribute]?.[0] ?? "", slice, value });
  }
  return `#${new URLSearchParams(said)}`;
}

const scoreAddress = (slice, attribute, label, batch = chosen.batch) =>
  address({ slice, attribute, label, batch, explicit: true });

function table(columns, rows, caption) {
  return element("table", { class: "plain" },
    element("caption", { class: "hide" }, caption),
    element("thead", {}, element("tr", {}, ...columns.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, n) =>
      element(n ? "td" : "th", n ? {} : { scope: "row" }, String(cell ?? "")))))));
}

// The rows behind a chart, as a table to open and a file to save; numbers are whole in the file.
function rowsBehind(what, file, columns, rows, texts = null) {
  const shown = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": what });
  const details = element("details", {}, element("summary", {}, what), shown);
  details.addEventListener("toggle", () => {
    if (details.open && !shown.childElementCount) shown.append(table(columns, texts ?? rows, what));
  });
  return element("div", { class: "tools" }, details, csvButton(file, columns, rows));
}

function csvButton(file, columns, rows) {
  return element("button", { type: "button", class: "csv", "aria-label": `Save the rows of ${file} as CSV`, click: () => save(file, columns, rows) }, "CSV");
}

function save(file, columns, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    // A text that a spreadsheet would take for a formula is marked as text.
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns, ...rows].map((row) => row.map(cell).join(","));
  const url = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  element("a", { href: url, download: `${file}-${doc.batches[chosen.batch]}.csv`.replace(/[^\w.-]+/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const sliceName = (slice) => doc.slices[slice][2];
const groupName = (group) => (group >= 0 ? doc.groups[group][2] : "");
// At the start of a line a label gets a capital; a value without one stays as it is.
const opening = ([, value, label]) => (value === label ? label : capital(label));
const sliceTitle = (slice) => opening(doc.slices[slice]);
const groupTitle = (group) => opening(doc.groups[group]);
const attributeName = (attribute) => doc.attributes[attribute]?.[1] ?? "";

// "exposure ratio, gender"
function scoreName(label, attribute) {
  const of = attributeName(attribute);
  return of ? `${doc.labels[label].plain}, ${of}` : doc.labels[label].plain;
}
