// Sparse products on the graph, in typed arrays: the one loop of longnn, in the page.
//
//   g(P) x = sum_j beta_j T_j(P) x,   T_{j+1}(P) x = 2 P T_j(P) x - T_{j-1}(P) x

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

// What each node adds to the score of node i for one output:
//   contribution_v = sum_h g_h(P)_iv t_vh W_hc, the row g_h(P)_i from products with the unit vector.
// Returns {weight, says, contribution, base}; weight and says are null where there are several h.
export function contributions(P, filter, form, i, output) {
  const nodes = P.start.length - 1;
  const unit = new Float64Array(nodes);
  unit[i] = 1;
  const terms = chebyshevTerms(P, unit, filter.degree);
  const { signal, mix, base } = form;
  const width = signal.length / nodes;
  const row = (h) => combine(terms, filter.channels[filter.channels.length === 1 ? 0 : h]);
  const contribution = new Float64Array(nodes);
  if (!mix) {
    const weight = row(output);
    const says = Float64Array.from({ length: nodes }, (_, v) => signal[v * width + output]);
    for (let v = 0; v < nodes; v++) contribution[v] = weight[v] * says[v];
    return { weight, says, contribution, base: base[output] };
  }
  const outputs = base.length;
  for (let h = 0; h < width; h++) {
    const weight = row(h);
    const share = mix[h * outputs + output];
    for (let v = 0; v < nodes; v++) contribution[v] += weight[v] * signal[v * width + h] * share;
  }
  return { weight: null, says: null, contribution, base: base[output] };
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
