// How the seeds of a method become a line and a band.

const RESAMPLES = 200;

/** Random numbers in [0, 1) that are the same each time the page is opened (mulberry32). */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const resamples = new Map();

/** [RESAMPLES][n]: which seeds each resample draws; the same ones at all points of a curve. */
function resampled(n) {
  if (!resamples.has(n)) {
    const random = generator(n);
    const draw = () => Array.from({ length: n }, () => Math.floor(random() * n));
    resamples.set(n, Array.from({ length: RESAMPLES }, draw));
  }
  return resamples.get(n);
}

function mean(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** The mean of what remains without the lowest and the highest quarter, rounded down to whole seeds. */
function interquartileMean(values) {
  const cut = Math.floor(values.length / 4);
  if (!cut) return mean(values);
  return mean(Array.from(values).sort((a, b) => a - b).slice(cut, values.length - cut));
}

const CENTRES = { mean, iqm: interquartileMean };

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}

/** [low, high] of a band around the centre of one value per seed; null for a single seed or no band. */
function bandOf(values, centre, kind) {
  if (values.length < 2 || kind === "none") return null;
  const middle = CENTRES[centre](values);
  if (kind === "se" && centre === "mean") {
    const error = deviation(values) / Math.sqrt(values.length);
    return [middle - error, middle + error];
  }
  const drawn = resampled(values.length).map((seeds) => CENTRES[centre](seeds.map((seed) => values[seed])));
  if (kind === "se") {
    const error = deviation(drawn);
    return [middle - error, middle + error];
  }
  drawn.sort((a, b) => a - b);
  return [quantile(drawn, 0.025), quantile(drawn, 0.975)];
}

/** The line and the band over all points of `rows`, one row per seed. */
function summarize(rows, centre, kind) {
  const middle = [], low = [], high = [];
  for (let point = 0; point < rows[0].length; point++) {
    const values = rows.map((row) => row[point]).filter((value) => value !== null);
    middle.push(values.length ? CENTRES[centre](values) : NaN);
    const band = bandOf(values, centre, kind);
    if (band) { low.push(band[0]); high.push(band[1]); }
  }
  return { middle, low: low.length === middle.length ? low : null, high: low.length === middle.length ? high : null };
}
