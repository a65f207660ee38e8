// Elements by a short name. Text is always text: nothing from a user's files becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

export const h = (name, attributes = {}, ...children) =>
  build(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  build(document.createElementNS(SVG, name), attributes, children);

export const byId = (id) => document.getElementById(id);

// Set the text of an element, where it changes: the page is laid out anew only then
export function say(id, text) {
  const element = byId(id);
  if (element.textContent !== String(text)) element.textContent = text;
}

// A number as a person would write it
export function show(value, digits = 3) {
  if (!Number.isFinite(value)) return "n/a";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 || size < 1e-3) return value.toExponential(digits - 1).replace("-", "\u2212");
  return value.toPrecision(digits).replace("-", "\u2212");
}

export const percent = (p) => `${(100 * p).toFixed(1)} %`;
