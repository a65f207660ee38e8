// A chart in SVG: axes, lines, areas, marks. Elements are kept and changed in place, so that a
// slider can be dragged at the speed of the screen. The scales stand in data attributes.

import { scaleLinear } from "d3-scale";
import { area, line } from "d3-shape";
import { svg } from "./dom.js";

const MARGIN = { top: 10, right: 14, bottom: 38, left: 48 };

export class Chart {
  // options: {height, x, y} with the names of the axes
  constructor(host, { height = 260, xName = "", yName = "", xTicks = 6 }) {
    this.host = host;
    this.height = height;
    this.xTicks = xTicks;
    this.axes = svg("g", { class: "axes" });
    this.inside = svg("rect", {});
    const name = `inside-${host.id}`;
    const clip = svg("clipPath", { id: name }, this.inside);
    this.body = svg("g", { class: "body", "clip-path": `url(#${name})` });
    this.top = svg("g", { class: "top" });
    this.xName = svg("text", { class: "name", "text-anchor": "end" }, xName);
    this.yName = svg("text", { class: "name", y: 2 }, yName);
    this.root = svg(
      "svg",
      { class: "chart", role: "img", "font-size": 12 },
      clip,
      this.axes,
      this.body,
      this.top,
      this.xName,
      this.yName,
    );
    host.append(this.root);
    this.parts = new Map();
    this.resize();
  }

  resize() {
    this.width = Math.max(this.host.clientWidth, 240);
    this.root.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.root.setAttribute("width", this.width);
    this.root.setAttribute("height", this.height);
    this.xName.setAttribute("x", this.width - MARGIN.right);
    this.xName.setAttribute("y", this.height - 4);
    this.yName.setAttribute("y", 10);
    this.yName.setAttribute("x", 4);
  }

  // Rename the axes
  names(x, y) {
    if (this.xName.textContent !== x) this.xName.textContent = x;
    if (this.yName.textContent !== y) this.yName.textContent = y;
  }

  // Domains of the axes; a domain of no width is widened
  domains(x, y) {
    const wide = ([low, high]) => (high > low ? [low, high] : [low - 1, high + 1]);
    const top = MARGIN.top + 12;
    this.x = scaleLinear(wide(x), [MARGIN.left, this.width - MARGIN.right]);
    this.y = scaleLinear(wide(y), [this.height - MARGIN.bottom, top]);
    this.y.nice(5);
    const [x0, x1] = this.x.domain();
    const [y0, y1] = this.y.domain();
    const [left, right] = this.x.range();
    const [bottom, up] = this.y.range();
    this.root.dataset.domain = [x0, x1, y0, y1].join(" ");
    this.root.dataset.range = [left, right, bottom, up].join(" ");
    this.set(this.inside, { x: left, y: up - 2, width: right - left, height: bottom - up + 4 });
    this.drawAxes();
    this.seen = new Set();
  }

  drawAxes() {
    const key = [this.width, this.root.dataset.domain].join("|");
    if (key === this.drawn) return;
    this.drawn = key;
    const [left, right] = this.x.range();
    const [bottom, top] = this.y.range();
    const parts = [];
    const yText = this.y.tickFormat(5);
    const xText = this.x.tickFormat(this.xTicks);
    for (const t of this.y.ticks(5)) {
      const y = this.y(t);
      parts.push(svg("line", { class: t === 0 ? "zero" : "grid", x1: left, x2: right, y1: y, y2: y }));
      parts.push(svg("text", { x: left - 6, y: y + 4, "text-anchor": "end", class: "tick" }, yText(t)));
    }
    for (const t of this.x.ticks(this.xTicks)) {
      const x = this.x(t);
      parts.push(svg("line", { class: "mark", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      parts.push(
        svg("text", { x, y: bottom + 16, "text-anchor": "middle", class: "tick" }, xText(t)),
      );
    }
    parts.push(svg("line", { class: "mark", x1: left, x2: right, y1: bottom, y2: bottom }));
    parts.push(svg("line", { class: "mark", x1: left, x2: left, y1: bottom, y2: top }));
    this.axes.replaceChildren(...parts);
  }

  // An element that is kept from one drawing to the next
  part(key, name, layer = this.body) {
    this.seen.add(key);
    let element = this.parts.get(key);
    if (!element) {
      element = svg(name, { "data-series": key });
      this.parts.set(key, element);
      layer.append(element);
    }
    return element;
  }

  set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
  }

  line(key, xs, ys, attributes) {
    const path = line()
      .defined((_, i) => Number.isFinite(ys[i]))
      .x((_, i) => this.x(xs[i]))
      .y((_, i) => this.clamp(this.y(ys[i])));
    this.set(this.part(key, "path"), { fill: "none", d: path(xs) ?? "", ...attributes });
  }

  area(key, xs, ys, attributes) {
    const floor = this.y.range()[0];
    const path = area()
      .x((_, i) => this.x(xs[i]))
      .y1((_, i) => this.clamp(this.y(ys[i])))
      .y0(floor);
    this.set(this.part(key, "path"), { d: path(xs) ?? "", ...attributes });
  }

  dot(key, x, y, attributes) {
    const place = { cx: this.x(x), cy: this.clamp(this.y(y)), r: 5 };
    this.set(this.part(key, "circle", this.top), { ...place, ...attributes });
  }

  // A short mark on the x axis
  tick(key, x, attributes) {
    const bottom = this.y.range()[0];
    const place = { x1: this.x(x), x2: this.x(x), y1: bottom, y2: bottom - 14 };
    this.set(this.part(key, "line", this.top), { ...place, ...attributes });
  }

  clamp(y) {
    return Math.max(-2000, Math.min(4000, y));
  }

  // Drop what was not drawn this time, and say in words what there is to see
  finish(label) {
    for (const [key, element] of this.parts) {
      if (this.seen.has(key)) continue;
      element.remove();
      this.parts.delete(key);
    }
    this.root.setAttribute("aria-label", label);
  }
}

// The smallest and the largest finite number of some curves, 0 among them
export function extent(...curves) {
  let low = 0;
  let high = 0;
  for (const curve of curves)
    for (const value of curve) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return [low, high];
}
