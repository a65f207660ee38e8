// The graph on a canvas: thousands of nodes that change their colour at every move of a slider.
// Edges are drawn once per view into a picture of their own; nodes are drawn in order of colour.

import { quadtree } from "d3-quadtree";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { shades } from "./colours.js";

export class Network {
  constructor(canvas, { onSelect }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.edges = document.createElement("canvas");
    this.transform = zoomIdentity;
    this.onSelect = onSelect;
    this.zoom = zoom()
      .scaleExtent([0.5, 60])
      .on("zoom", ({ transform }) => {
        this.transform = transform;
        this.stale = true;
        this.request();
      });
    select(canvas).call(this.zoom).on("dblclick.zoom", null);
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      this.onSelect(this.find(event.clientX - box.left, event.clientY - box.top));
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  setGraph(graph, operator) {
    if (this.graph === graph && this.operator === operator) return;
    if (this.graph !== graph) this.home();
    this.graph = graph;
    this.operator = operator;
    const places = Array.from({ length: graph.ids.length }, (_, i) => i);
    const [x, y] = [0, 1].map((k) => (i) => graph.position[2 * i + k]);
    this.tree = quadtree(places, x, y);
    this.stale = true;
  }

  home() {
    select(this.canvas).call(this.zoom.transform, zoomIdentity);
  }

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    for (const one of [this.canvas, this.edges]) {
      one.width = Math.round(this.width * this.ratio);
      one.height = Math.round(this.height * this.ratio);
    }
    this.stale = true;
  }

  // From the square [-1, 1]^2 to pixels
  get scale() { return (0.47 * Math.min(this.width, this.height)) * this.transform.k; }
  left(x) { return this.transform.applyX(this.width / 2 + x * 0.47 * Math.min(this.width, this.height)); }
  top(y) { return this.transform.applyY(this.height / 2 + y * 0.47 * Math.min(this.width, this.height)); }

  get radius() {
    const room = Math.min(this.width, this.height) / Math.sqrt(Math.max(this.graph.ids.length, 1));
    return Math.max(1.6, Math.min(7, 0.16 * room)) * Math.min(2.5, Math.sqrt(this.transform.k));
  }

  place(i) {
    const { position } = this.graph;
    return [this.left(position[2 * i]), this.top(position[2 * i + 1])];
  }

  // The node at a point, or null
  find(px, py) {
    const half = 0.47 * Math.min(this.width, this.height);
    const x = (this.transform.invertX(px) - this.width / 2) / half;
    const y = (this.transform.invertY(py) - this.height / 2) / half;
    const reach = Math.max(this.radius + 4, 12) / this.scale;
    return this.tree.find(x, y, reach) ?? null;
  }

  key(event) {
    const step = 40;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const on = select(this.canvas);
    if (event.key in moves) {
      const [x, y] = moves[event.key];
      on.call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else if (event.key === "+" || event.key === "=") on.call(this.zoom.scaleBy, 1.3);
    else if (event.key === "-") on.call(this.zoom.scaleBy, 1 / 1.3);
    else if (event.key === "0") this.home();
    else if (event.key === "n" || event.key === "p") {
      const nodes = this.graph.ids.length;
      const at = this.selected ?? (event.key === "n" ? -1 : 0);
      this.onSelect((at + (event.key === "n" ? 1 : nodes - 1)) % nodes);
    } else return;
    event.preventDefault();
  }

  draw(colouring, selected, theme) {
    Object.assign(this, { colouring, selected, theme });
    this.paint();
  }

  request() {
    if (this.waiting || !this.colouring) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  // Each edge once: [x1, y1, x2, y2, ...]
  segments() {
    const { start, column } = this.operator;
    const found = [];
    for (let i = 0; i + 1 < start.length; i++)
      for (let e = start[i]; e < start[i + 1]; e++) {
        if (column[e] <= i) continue;
        found.push(...this.place(i), ...this.place(column[e]));
      }
    return found;
  }

  paintEdges() {
    const brush = this.edges.getContext("2d");
    brush.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    brush.clearRect(0, 0, this.width, this.height);
    brush.strokeStyle = this.theme.edge;
    brush.lineWidth = 0.6;
    brush.beginPath();
    const all = this.segments();
    for (let e = 0; e < all.length; e += 4) {
      brush.moveTo(all[e], all[e + 1]);
      brush.lineTo(all[e + 2], all[e + 3]);
    }
    brush.stroke();
    this.stale = false;
  }

  paint() {
    const brush = this.context;
    if (this.stale || this.painted !== this.theme.edge) this.paintEdges();
    this.painted = this.theme.edge;
    brush.setTransform(1, 0, 0, 1, 0, 0);
    brush.clearRect(0, 0, this.canvas.width, this.canvas.height);
    brush.drawImage(this.edges, 0, 0);
    brush.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const r = this.radius;
    const { colours, places } = shades(this.colouring, this.theme.dark);
    for (const [colour, nodes] of byColour(colours, places)) {
      brush.fillStyle = colour;
      brush.beginPath();
      for (const i of nodes) {
        const [x, y] = this.place(i);
        if (x < -r || y < -r || x > this.width + r || y > this.height + r) continue;
        brush.moveTo(x + r, y);
        brush.arc(x, y, r, 0, 7);
      }
      brush.fill();
    }
    if (this.selected !== null) {
      const [x, y] = this.place(this.selected);
      brush.strokeStyle = this.theme.ink;
      brush.lineWidth = 2.5;
      brush.beginPath();
      brush.arc(x, y, r + 4, 0, 7);
      brush.stroke();
    }
  }

  // The same picture as SVG, for a file
  toSvg(build) {
    const { colours, places } = shades(this.colouring, this.theme.dark);
    const fixed = (v) => v.toFixed(1);
    const all = this.segments().map(fixed);
    let d = "";
    for (let e = 0; e < all.length; e += 4) d += `M${all[e]} ${all[e + 1]}L${all[e + 2]} ${all[e + 3]}`;
    const root = build("svg", { viewBox: `0 0 ${this.width} ${this.height}` });
    root.append(build("path", { d, fill: "none", stroke: this.theme.edge, "stroke-width": 0.6 }));
    for (const [colour, nodes] of byColour(colours, places)) {
      const group = build("g", { fill: colour });
      for (const i of nodes) {
        const [x, y] = this.place(i);
        group.append(build("circle", { cx: fixed(x), cy: fixed(y), r: fixed(this.radius) }));
      }
      root.append(group);
    }
    if (this.selected !== null) {
      const [cx, cy] = this.place(this.selected).map(fixed);
      const ring = { fill: "none", stroke: this.theme.ink, "stroke-width": 2.5 };
      root.append(build("circle", { cx, cy, r: fixed(this.radius + 4), ...ring }));
    }
    return root;
  }
}

function byColour(colours, places) {
  const lists = colours.map(() => []);
  for (let i = 0; i < places.length; i++) lists[places[i]].push(i);
  // What is unknown lies below what is known.
  return colours.map((colour, k) => [colour, lists[k]]).reverse().filter(([, nodes]) => nodes.length);
}
