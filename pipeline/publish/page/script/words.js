// Numbers and names as people read them.

function digits(value) {
  if (value === null || value === undefined) return "none";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 999.5) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return value.toPrecision(3);
}

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;
const span = (lower, upper) =>
  lower === null && upper === null ? ""
    : [lower, upper].map((end) => (end === null ? "" : digits(end))).join(" to ").trim();
const short = (text, most = MOST_LETTERS) =>
  ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
const sliceName = ([slice, value]) =>
  (slice === WHOLE ? "whole batch" : `${short(slice)}: ${short(value)}`);
const attributeName = (name) => (name === null ? "without groups" : short(name));
const verdict = (status) => `${LOOKS[status].symbol} ${LOOKS[status].word}`;
const limitText = ({ least, most }) =>
  least !== null ? `at least ${digits(least)}` : most !== null ? `at most ${digits(most)}` : "";

function aboutScore() {
  const label = doc.labels[chosen.label].label;
  const attribute = doc.attributes[chosen.attribute];
  return `${label}${attribute ? ` of ${short(attribute)}` : ""}, ${sliceName(doc.slices[chosen.slice])}`;
}
