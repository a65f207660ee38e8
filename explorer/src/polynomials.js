// Orthonormal Jacobi polynomials and Chebyshev series, as longnn.polynomials has them.
//
//   x p_k = s_{k+1} p_{k+1} + c_k p_k + s_k p_{k-1},   p_0 = mu^{-1/2}
//
// (Gautschi, Orthogonal Polynomials, Table 1.1, with the factor 1+a+b of s_1^2 cancelled.)
// A filter is sum_k alpha_k p_k(x) = sum_j beta_j T_j(x) with beta = C^T alpha.

// log Gamma(z), z > 0: Lanczos' series with g = 7 and nine terms.
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7,
];

export function logGamma(z) {
  if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - logGamma(1 - z);
  let sum = LANCZOS[0];
  for (let i = 1; i < 9; i++) sum += LANCZOS[i] / (z - 1 + i);
  const t = z + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(sum);
}

// log mu, mu = 2^{a+b+1} Gamma(a+1) Gamma(b+1) / Gamma(a+b+2)
export function logMass(a, b) {
  return (a + b + 1) * Math.LN2 + logGamma(a + 1) + logGamma(b + 1) - logGamma(a + b + 2);
}

// The recurrence up to degree K: {first, s: (K+1), c: (K)}; s[0] is not used.
export function jacobiTable(K, a, b, weight) {
  const total = a + b;
  const s = new Float64Array(K + 1);
  const c = new Float64Array(K);
  for (let k = 0; k < K; k++) {
    const n = 2 * k + total;
    c[k] = k === 0 ? (b - a) / (total + 2) : ((b - a) * total) / (n * (n + 2));
  }
  for (let k = 1; k <= K; k++) {
    const n = 2 * k + total;
    const square =
      k === 1
        ? (4 * (1 + a) * (1 + b)) / ((2 + total) ** 2 * (3 + total))
        : (4 * k * (k + a) * (k + b) * (k + total)) / (n * n * (n * n - 1));
    s[k] = Math.sqrt(square);
  }
  return { first: weight === "paper" ? Math.exp(-0.5 * logMass(a, b)) : 1, s, c };
}

// p_0(x) .. p_K(x)
export function jacobi(x, K, a, b, weight = "probability") {
  return evaluateTable(jacobiTable(K, a, b, weight), x);
}

// Run the recurrence of a table at x
export function evaluateTable({ first, s, c }, x) {
  const K = c.length;
  const p = new Float64Array(K + 1);
  p[0] = first;
  for (let k = 0; k < K; k++) {
    const back = k > 0 ? s[k] * p[k - 1] : 0;
    p[k + 1] = ((x - c[k]) * p[k] - back) / s[k + 1];
  }
  return p;
}

// C, row k = p_k in Chebyshev terms; lower triangular. x T_0 = T_1, x T_j = (T_{j-1} + T_{j+1})/2.
export function basisMatrix(K, a, b, weight = "probability") {
  const { first, s, c } = jacobiTable(K, a, b, weight);
  const C = Array.from({ length: K + 1 }, () => new Float64Array(K + 1));
  C[0][0] = first;
  for (let k = 0; k < K; k++) {
    const next = C[k + 1];
    for (let j = 0; j <= k; j++) {
      const half = C[k][j] / (j === 0 ? 1 : 2);
      next[j + 1] += half;
      if (j > 0) next[j - 1] += half;
    }
    for (let j = 0; j <= k + 1; j++) {
      const back = k > 0 ? s[k] * C[k - 1][j] : 0;
      next[j] = (next[j] - c[k] * C[k][j] - back) / s[k + 1];
    }
  }
  return C;
}

// beta = C^T alpha
export function toChebyshev(alpha, C) {
  const beta = new Float64Array(alpha.length);
  for (let k = 0; k < alpha.length; k++)
    for (let j = 0; j <= k; j++) beta[j] += C[k][j] * alpha[k];
  return beta;
}

// alpha from beta = C^T alpha, from the highest term down
export function fromChebyshev(beta, C) {
  const K = beta.length - 1;
  const alpha = new Float64Array(K + 1);
  for (let k = K; k >= 0; k--) {
    let rest = beta[k];
    for (let l = k + 1; l <= K; l++) rest -= C[l][k] * alpha[l];
    alpha[k] = rest / C[k][k];
  }
  return alpha;
}

// sum_j beta_j T_j(x), by Clenshaw's recurrence
export function evaluateSeries(beta, x) {
  let next = 0;
  let after = 0;
  for (let j = beta.length - 1; j > 0; j--) {
    [next, after] = [beta[j] + 2 * x * next - after, next];
  }
  return beta[0] + x * next - after;
}

// The response at the eigenvalues lambda = 1 - x of the Laplacian
export function response(beta, eigenvalues) {
  return Float64Array.from(eigenvalues, (l) => evaluateSeries(beta, 1 - l));
}

// (1-x)^a (1+x)^b / mu at x = 1 - lambda: of mass one
export function jacobiWeight(lambda, a, b) {
  return Math.exp(a * Math.log(lambda) + b * Math.log(2 - lambda) - logMass(a, b));
}

// Channels (each a beta) with the same sign where the filter is strongest, and their mean:
// the sign of a whole channel is a convention, since the map before it can undo it.
export function meanSeries(channels, eigenvalues) {
  if (channels.length === 1) return channels[0];
  const curves = channels.map((beta) => response(beta, eigenvalues));
  let peak = 0;
  let highest = -1;
  for (let i = 0; i < eigenvalues.length; i++) {
    const size = curves.reduce((sum, curve) => sum + Math.abs(curve[i]), 0);
    if (size > highest) [peak, highest] = [i, size];
  }
  const sign = curves.map((curve) => (curve[peak] < 0 ? -1 : 1));
  const majority = sign.reduce((sum, one) => sum + one, 0) < 0 ? -1 : 1;
  const mean = new Float64Array(channels[0].length);
  channels.forEach((beta, h) => {
    for (let j = 0; j < mean.length; j++) mean[j] += (majority * sign[h] * beta[j]) / channels.length;
  });
  return mean;
}
