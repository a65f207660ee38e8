// Sparse products on the graph, in typed arrays: the one loop of longnn, in the page.
//
//   g(P) x = sum_j beta_j T_j(P) x,   T_{j+1}(P) x = 2 P T_j(P) x - T_{j-1}(P) x
//
// On arcs an operator has two rows per node, {copies: 2}: signals are lifted to both copies and
// folded back.

import { basisMatrix, fromChebyshev } from "./polynomials.js";

// y = P x for an operator {start, column, value} in compressed rows
export function product(P, x, y) {
  const { start, column, value } = P;
  for (let i = 0; i < y.length; i++) {
    let sum = 0;
    for (let e = start[i]; e < start[i + 1]; e++) sum += value[e] * x[column[e]];
    y[i] = sum;
  }
  return y;
}

// T_0(P) x .. T_K(P) x, each of length nodes
export function chebyshevTerms(P, x, K) {
  const terms = [Float64Array.from(x)];
  for (let j = 1; j <= K; j++) {
    const next = product(P, terms[j - 1], new Float64Array(x.length));
    if (j > 1) for (let i = 0; i < next.length; i++) next[i] = 2 * next[i] - terms[j - 2][i];
    terms.push(next);
  }
  return terms;
}

// sum_j beta_j terms[j]
export function combine(terms, beta) {
  const sum = new Float64Array(terms[0].length);
  for (let j = 0; j < beta.length; j++)
    for (let i = 0; i < sum.length; i++) sum[i] += beta[j] * terms[j][i];
  return sum;
}

export function applyFilter(P, beta, x) {
  return combine(chebyshevTerms(P, x, beta.length - 1), beta);
}

export const nodesOf = (P) => (P.start.length - 1) / P.copies;

// A signal on the nodes as one on all their copies
export function lift(P, x) {
  if (P.copies === 1) return x;
  const both = new Float64Array(P.copies * x.length);
  for (let c = 0; c < P.copies; c++) both.set(x, c * x.length);
  return both;
}

// The sum over the copies of every node
export function fold(P, y) {
  if (P.copies === 1) return y;
  const nodes = y.length / P.copies;
  const sum = new Float64Array(nodes);
  for (let i = 0; i < y.length; i++) sum[i % nodes] += y[i];
  return sum;
}

// Who is one hop from whom, {start, column, value} on the nodes; on arcs along them and against
export function links(P) {
  if (P.copies === 1) return P;
  if (P.links) return P.links;
  const nodes = nodesOf(P);
  const start = new Int32Array(nodes + 1);
  const column = [];
  for (let i = 0; i < nodes; i++) {
    const near = new Set();
    for (let row = i; row < P.copies * nodes; row += nodes)
      for (let e = P.start[row]; e < P.start[row + 1]; e++) near.add(P.column[e] % nodes);
    column.push(...near);
    start[i + 1] = column.length;
  }
  const value = new Float64Array(column.length).fill(1);
  P.links = { copies: 1, start, column: Int32Array.from(column), value };
  return P.links;
}

// How many edges each node is away from node i: -1 where there is no way
export function distances(P, i) {
  const nodes = P.start.length - 1;
  const ring = new Int32Array(nodes).fill(-1);
  ring[i] = 0;
  let front = [i];
  for (let d = 1; front.length; d++) {
    const next = [];
    for (const u of front)
      for (let e = P.start[u]; e < P.start[u + 1]; e++) {
        const v = P.column[e];
        if (ring[v] < 0 && P.value[e] !== 0) {
          ring[v] = d;
          next.push(v);
        }
      }
    front = next;
  }
  return ring;
}

// What each node adds to q . score of node i, for weights q of the outputs. With r = W q,
//   contribution_v = sum_h r_h g_h(P)_iv t_vh,   the row g_h(P)_i from products with the unit vector,
// of all copies of i on arcs. By degree j of the Chebyshev series it is
//   r_h beta_jh T_j(P)_i . t_h,   and of the filter's own basis, beta_h = C^T alpha_h, likewise.
// Returns {weight, says, contribution, base, chebyshev, terms}; weight and says are null where there
// are several, terms where the basis is not orthonormal.
export function contributions(P, filter, form, i, q) {
  const nodes = nodesOf(P);
  const unit = new Float64Array(P.copies * nodes);
  for (let c = 0; c < P.copies; c++) unit[c * nodes + i] = 1;
  const T = chebyshevTerms(P, unit, filter.degree);
  const { signal, mix, base } = form;
  const width = signal.length / unit.length;
  const r = mix ? mixed(mix, q, width) : q;
  const shared = filter.channels.length === 1;
  const used = Array.from({ length: width }, (_, h) => h).filter((h) => r[h] !== 0);
  const C = filter.orthonormal ? basisMatrix(filter.degree, filter.a, filter.b, filter.weight) : null;
  const row = shared ? combine(T, filter.channels[0]) : null;
  const value = new Float64Array(unit.length);
  const chebyshev = new Float64Array(filter.degree + 1);
  const terms = C ? new Float64Array(filter.degree + 1) : null;
  let weight = row;
  for (const h of used) {
    const beta = filter.channels[shared ? 0 : h];
    weight = row ?? combine(T, beta);
    for (let v = 0; v < value.length; v++) value[v] += r[h] * weight[v] * signal[v * width + h];
    const D = T.map((t) => r[h] * column(t, signal, width, h)); // r_h T_j(P)_i . t_h
    D.forEach((d, j) => { chebyshev[j] += beta[j] * d; });
    if (C) addTerms(terms, C, fromChebyshev(beta, C), D);
  }
  const single = P.copies === 1 && (shared || used.length === 1);
  const says = single
    ? Float64Array.from({ length: nodes }, (_, v) => used.reduce((sum, h) => sum + r[h] * signal[v * width + h], 0))
    : null;
  return {
    weight: single ? weight : null,
    says,
    contribution: fold(P, value),
    base: base.reduce((sum, b, k) => sum + q[k] * b, 0),
    chebyshev,
    terms,
  };
}

// r = W q, W of shape (channels, outputs)
function mixed(mix, q, width) {
  const outputs = q.length;
  return Float64Array.from({ length: width }, (_, h) => q.reduce((sum, v, k) => sum + v * mix[h * outputs + k], 0));
}

function column(t, signal, width, h) {
  let sum = 0;
  for (let v = 0; v < t.length; v++) sum += t[v] * signal[v * width + h];
  return sum;
}

// terms_k += alpha_k sum_j C_kj D_j
function addTerms(terms, C, alpha, D) {
  for (let k = 0; k < terms.length; k++) {
    let sum = 0;
    for (let j = 0; j <= k; j++) sum += C[k][j] * D[j];
    terms[k] += alpha[k] * sum;
  }
}

// Sums by distance, the positive and the negative parts apart: [{ring, nodes, plus, minus}]
export function byRing(ring, values, most) {
  const rows = Array.from({ length: most + 1 }, (_, d) => ({ ring: d, nodes: 0, plus: 0, minus: 0 }));
  for (let v = 0; v < values.length; v++) {
    if (ring[v] < 0 || ring[v] > most) continue;
    const one = rows[ring[v]];
    one.nodes += 1;
    if (values[v] > 0) one.plus += values[v];
    else one.minus += values[v];
  }
  while (rows.length > 1 && rows[rows.length - 1].nodes === 0) rows.pop();
  return rows;
}

// x^T (I - P) x / x^T x: the mean frequency of a signal, between 0 and 2
export function frequency(P, x) {
  const y = product(P, x, new Float64Array(x.length));
  let top = 0;
  let bottom = 0;
  for (let i = 0; i < x.length; i++) {
    top += x[i] * (x[i] - y[i]);
    bottom += x[i] * x[i];
  }
  return bottom > 0 ? top / bottom : NaN;
}
