// The graph on a canvas: thousands of nodes that change their colour at every move of a slider.
// Ground and edges are drawn once per view; nodes are stamped into a copy of those pixels. While the
// view moves, the last picture is moved, and drawn anew when the hand rests or it has gone far.

import { quadtree } from "d3-quadtree";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { shades } from "./colours.js";

const REST = 90; // milliseconds without a move after which the picture is drawn anew
// How far the last picture may be moved, in parts of the smaller side, and scaled; and the same
// where drawing takes so many milliseconds that a hand would feel it.
const FAR = { way: 0.35, scale: 1.5 };
const FARTHER = { way: 1.5, scale: 4 };
const SLOW = 12;

export class Network {
  constructor(canvas, { onSelect }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.edges = document.createElement("canvas");
    this.still = document.createElement("canvas"); // the last picture, to be moved
    this.transform = zoomIdentity;
    this.onSelect = onSelect;
    this.zoom = zoom()
      .scaleExtent([0.5, 60])
      .on("zoom", ({ transform }) => {
        this.transform = transform;
        this.stale = true;
        this.moving = true;
        clearTimeout(this.resting);
        this.resting = setTimeout(() => this.rest(), REST);
        this.request();
      });
    select(canvas).call(this.zoom).on("dblclick.zoom", null);
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      this.onSelect(this.find(event.clientX - box.left, event.clientY - box.top));
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // links: who is beside whom, in compressed rows
  setGraph(graph, links) {
    if (this.graph === graph && this.links === links) return;
    if (this.graph !== graph) this.home();
    this.graph = graph;
    this.links = links;
    this.ends = pairs(links);
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
    for (const one of [this.canvas, this.edges, this.still]) {
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
    const same = this.colouring === colouring && this.selected === selected && this.theme === theme;
    Object.assign(this, { colouring, selected, theme });
    if (!same || this.stale) this.paint();
  }

  request() {
    if (this.waiting || !this.colouring) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      if (this.moving && this.isNear()) this.move();
      else this.paint();
    });
  }

  rest() {
    this.moving = false;
    this.request();
  }

  // Whether most of what is to be seen is in the last picture
  isNear() {
    if (!this.drawn) return false;
    const { k, x, y } = this.passed();
    const middle = [x + (k * this.width) / 2 - this.width / 2, y + (k * this.height) / 2 - this.height / 2];
    const most = this.cost > SLOW ? FARTHER : FAR;
    const near = Math.hypot(...middle) < most.way * Math.min(this.width, this.height);
    return near && k > 1 / most.scale && k < most.scale;
  }

  // From the view of the last picture to this one: p -> k p + (x, y)
  passed() {
    const k = this.transform.k / this.drawn.k;
    return { k, x: this.transform.x - k * this.drawn.x, y: this.transform.y - k * this.drawn.y };
  }

  move() {
    const brush = this.context;
    if (!this.copied) {
      this.still.getContext("2d").drawImage(this.canvas, 0, 0);
      this.copied = true;
    }
    const { k, x, y } = this.passed();
    brush.setTransform(1, 0, 0, 1, 0, 0);
    brush.fillStyle = this.theme.ground;
    brush.fillRect(0, 0, this.canvas.width, this.canvas.height);
    brush.setTransform(k, 0, 0, k, x * this.ratio, y * this.ratio);
    brush.drawImage(this.still, 0, 0);
  }

  // All nodes in pixels, [x0, y0, x1, y1, ...]
  points() {
    const { position } = this.graph;
    const half = 0.47 * Math.min(this.width, this.height);
    const { k, x, y } = this.transform;
    const found = new Float32Array(position.length);
    for (let i = 0; i < found.length; i += 2) {
      found[i] = x + k * (this.width / 2 + half * position[i]);
      found[i + 1] = y + k * (this.height / 2 + half * position[i + 1]);
    }
    return found;
  }

  // Ground and edges of this view as pixels, and where the nodes lie in it
  paintEdges() {
    const began = performance.now();
    const brush = this.edges.getContext("2d", { willReadFrequently: true });
    brush.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    brush.fillStyle = this.theme.ground;
    brush.fillRect(0, 0, this.width, this.height);
    brush.strokeStyle = this.theme.edge;
    brush.lineWidth = 0.6;
    brush.beginPath();
    const at = this.points();
    const { ends, width, height, ratio } = this;
    for (let e = 0; e < ends.length; e += 2) {
      const [u, v] = [2 * ends[e], 2 * ends[e + 1]];
      const [x1, y1, x2, y2] = [at[u], at[u + 1], at[v], at[v + 1]];
      if ((x1 < 0 && x2 < 0) || (y1 < 0 && y2 < 0)) continue;
      if ((x1 > width && x2 > width) || (y1 > height && y2 > height)) continue;
      brush.moveTo(x1, y1);
      brush.lineTo(x2, y2);
    }
    brush.stroke();
    this.base = brush.getImageData(0, 0, this.edges.width, this.edges.height);
    this.pixels = brush.createImageData(this.base);
    this.columns = Int32Array.from({ length: at.length / 2 }, (_, i) => Math.round(at[2 * i] * ratio));
    this.rows = Int32Array.from({ length: at.length / 2 }, (_, i) => Math.round(at[2 * i + 1] * ratio));
    this.mask = disc(this.radius * this.ratio);
    this.drawn = this.transform;
    this.stale = false;
    this.cost = performance.now() - began;
  }

  // A node is a stamp of a few pixels: thousands of them take a millisecond, with any graphics
  stamp(i, [red, green, blue]) {
    const { reach, cover } = this.mask;
    const { width, height, data } = this.pixels;
    const side = 2 * reach + 1;
    const [left, top] = [this.columns[i] - reach, this.rows[i] - reach];
    if (left < 0 || top < 0 || left + side > width || top + side > height) return;
    for (let y = 0, k = 0; y < side; y++) {
      let p = 4 * ((top + y) * width + left);
      for (let x = 0; x < side; x++, k++, p += 4) {
        const share = cover[k];
        if (share === 0) continue;
        data[p] += share * (red - data[p]);
        data[p + 1] += share * (green - data[p + 1]);
        data[p + 2] += share * (blue - data[p + 2]);
      }
    }
  }

  paint() {
    if (!this.width || !this.height) return;
    if (this.stale || this.painted !== this.theme.edge) this.paintEdges();
    this.painted = this.theme.edge;
    this.pixels.data.set(this.base.data);
    const { colours, places } = shades(this.colouring, this.theme.dark);
    for (const [colour, nodes] of byColour(colours, places, this.colouring.kind)) {
      const parts = rgb(colour);
      for (const i of nodes) this.stamp(i, parts);
    }
    const brush = this.context;
    brush.putImageData(this.pixels, 0, 0);
    this.copied = false;
    if (this.selected === null) return;
    const [x, y] = this.place(this.selected);
    brush.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    brush.strokeStyle = this.theme.ink;
    brush.lineWidth = 2.5;
    brush.beginPath();
    brush.arc(x, y, this.radius + 4, 0, 7);
    brush.stroke();
  }

  // The same picture as SVG, for a file
  toSvg(build) {
    const { colours, places } = shades(this.colouring, this.theme.dark);
    const fixed = (v) => v.toFixed(1);
    const at = Array.from(this.points(), fixed);
    let d = "";
    for (let e = 0; e < this.ends.length; e += 2) {
      const [u, v] = [2 * this.ends[e], 2 * this.ends[e + 1]];
      d += `M${at[u]} ${at[u + 1]}L${at[v]} ${at[v + 1]}`;
    }
    const root = build("svg", { viewBox: `0 0 ${this.width} ${this.height}` });
    root.append(build("path", { d, fill: "none", stroke: this.theme.edge, "stroke-width": 0.6 }));
    for (const [colour, nodes] of byColour(colours, places, this.colouring.kind)) {
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

// Each edge once, as the places of its ends: [u0, v0, u1, v1, ...]
function pairs({ start, column }) {
  const found = [];
  for (let i = 0; i + 1 < start.length; i++)
    for (let e = start[i]; e < start[i + 1]; e++) if (column[e] > i) found.push(i, column[e]);
  return Int32Array.from(found);
}

// How much of each pixel a disc covers, by its distance from the middle
function disc(radius) {
  const reach = Math.ceil(radius);
  const cover = [];
  for (let y = -reach; y <= reach; y++)
    for (let x = -reach; x <= reach; x++) {
      cover.push(Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(x, y))));
    }
  return { reach, cover: Float32Array.from(cover) };
}

function rgb(colour) {
  if (colour.startsWith("rgb")) return colour.slice(4, -1).split(",").map(Number);
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}

// Nodes by colour, the first drawn first: what is unknown or near zero lies below what stands out
function byColour(colours, places, kind) {
  const lists = colours.map(() => []);
  for (let i = 0; i < places.length; i++) lists[places[i]].push(i);
  const last = colours.length - 1;
  const height = (k) => (kind === "signed" ? Math.abs(k - (last - 1) / 2) : k);
  const order = colours.map((_, k) => k);
  order.sort((k, l) => (k === last ? -1 : l === last ? 1 : height(k) - height(l)));
  return order.filter((k) => lists[k].length).map((k) => [colours[k], lists[k]]);
}
