// Numbers as people read them: each is rounded once, from the full value, half-way up.

const minus = (text) => text.replace("-", "−");
const grouped = (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ",");

// Three significant digits; the same texts as pipeline.formatting.numbers.
function digits(value, places = 3) {
  if (value === null || value === undefined) return "none";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size >= 1e6 || size < 1e-4) return sign + size.toExponential(places - 1).replace("e+", "e");
  if (size >= 999.5) return sign + grouped(size.toFixed(0));
  return sign + size.toPrecision(places);
}

// A share as a percentage of two significant digits, whole above 10%.
function percent(value, places = 2) {
  if (value === 0) return "0%";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  const [figures, power] = size.toExponential(places - 1).split("e");
  // The decimal point moves in the text, so that nothing is rounded again.
  const moved = Number(power) + 2;
  if (moved >= places) return `${sign}${grouped(shifted(size.toFixed(2), 2))}%`;
  return `${sign}${shifted(figures, moved)}%`;
}

// Texts of numbers that stand side by side: digits are added until unequal ones read apart.
function apart(values, text, least, most = 8) {
  const places = values.map(() => least);
  const told = () => values.map((value, n) => (value === null ? "" : text(value, places[n])));
  for (let texts = told(); ; texts = told()) {
    const alike = values.map((value, n) => value !== null && places[n] < most
      && texts.some((other, k) => other === texts[n] && values[k] !== value));
    if (!alike.includes(true)) return texts;
    alike.forEach((more, n) => { if (more) places[n] += 1; });
  }
}

// A decimal text times a power of ten, digit for digit.
function shifted(text, power) {
  const [whole, part = ""] = text.split(".");
  const figures = whole + part;
  const point = whole.length + power;
  const padded = point <= 0 ? "0".repeat(1 - point) + figures : figures.padEnd(point, "0");
  const at = point <= 0 ? 1 : point;
  const rest = padded.slice(at);
  return padded.slice(0, at).replace(/^0+(?=\d)/, "") + (rest ? `.${rest}` : "");
}

const count = (n, one, many = `${one}s`) => `${grouped(String(n))} ${n === 1 ? one : many}`;
const span = (lower, upper, text = digits) =>
  (lower === null && upper === null ? "" : [lower, upper].map((end) => (end === null ? "" : text(end))).join(" to ").trim());
const limitText = ({ least, most }) => (least !== null ? `≥ ${bare(least)}` : most !== null ? `≤ ${bare(most)}` : "");
// A capital at the start of a sentence; a word like nDCG keeps its own.
const capital = (text) => (/^.\p{Lu}/u.test(text) ? text : text.slice(0, 1).toUpperCase() + text.slice(1));
const listed = (names) =>
  (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);

// A limit, or a tick, as somebody wrote it: without digits that say nothing.
function bare(value) {
  const text = Number(value.toPrecision(12)).toString();
  return text.length > 8 ? digits(value) : minus(text);
}

// About five ticks in round steps, within [low, high].
function ticksIn(low, high, most = 5) {
  const wide = high - low;
  if (!(wide > 0)) return [low];
  const size = 10 ** Math.floor(Math.log10(wide / most));
  const step = [1, 2, 2.5, 5, 10, 20].map((n) => n * size).find((each) => wide / each <= most) ?? wide;
  const first = Math.ceil(low / step - 1e-9);
  const ticks = [];
  for (let n = first; n * step <= high + step * 1e-9; n += 1) ticks.push(Number((n * step).toPrecision(12)));
  return ticks;
}
