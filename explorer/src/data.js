// From the JSON block of the page to typed arrays.

const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };

// What longnn.explorer.pack wrote, as a typed array with its shape
export function unpack(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
  const array = new KINDS[packed.kind](bytes.buffer);
  array.shape = packed.shape;
  return array;
}

function unpackAll(value) {
  if (Array.isArray(value)) return value.map(unpackAll);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.data === "string" && value.kind in KINDS && value.shape) return unpack(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpackAll(item)]));
}

// (K+1, channels) as one series per channel
export function channelsOf(beta, rows, channels, from = 0) {
  return Array.from({ length: channels }, (_, h) =>
    Float64Array.from({ length: rows }, (_, j) => beta[from + j * channels + h]),
  );
}

export function readData() {
  const data = unpackAll(JSON.parse(document.getElementById("data").textContent));
  for (const run of data.runs) {
    run.graph = data.graphs[run.graph];
    for (const model of run.models) {
      if (!model.filter) continue;
      const [rows, channels] = model.filter.beta.shape;
      model.filter.channels = channelsOf(model.filter.beta, rows, channels);
    }
  }
  return data;
}
