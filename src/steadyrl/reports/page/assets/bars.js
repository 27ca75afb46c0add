// Distributions of returns: bars on bins that the methods of a variant share, and marks for mean, GD and CVaR below.

const BARS_LEFT = 44;  // For labels as long as 0.5%, so that the axes of all rows begin at the same place.
const RATE_TICKS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005];

/** bin -> share of the episodes of these runs. */
function shares(distribution, runs) {
  const found = new Map();
  let total = 0;
  for (const run of runs) {
    const of = distribution.runs[run];
    if (!of) continue;
    total += of.n;
    for (const [bin, count] of of.counts) found.set(bin, (found.get(bin) || 0) + count);
  }
  for (const [bin, count] of found) found.set(bin, count / total);
  return found;
}

/** Bounds of the x axis: from the first to the last bin with an episode. */
function occupied(distribution) {
  const bins = Object.values(distribution.runs).flatMap((run) => run.counts.map(([bin]) => bin));
  const first = bins.reduce((a, b) => Math.min(a, b)), last = bins.reduce((a, b) => Math.max(a, b));
  const room = Math.max(1, 0.03 * (last - first)) * (distribution.edges[1] - distribution.edges[0]);
  return [distribution.edges[first] - room, distribution.edges[last + 1] + room];
}

function drawMarks(view, marks, y) {
  const { x, content } = view;
  if (!marks || !marks.mean) return;
  const mean = marks.mean.value, gd = marks.gini_deviation.value;
  const titled = (element, text) => { svg("title", {}, element).textContent = text; };
  titled(svg("path", { d: `M${x(mean - gd)} ${y}H${x(mean + gd)}m0 -4v8M${x(mean - gd)} ${y - 4}v8`, class: "stroke" },
    content), `mean ± GD, GD ${marks.gini_deviation.text}`);
  titled(svg("path", { d: `M${x(mean)} ${y - 5}l5 5-5 5-5-5z`, class: "ink" }, content), `mean ${marks.mean.text}`);
  titled(svg("path", { d: `M${x(marks.cvar_10.value)} ${y - 5}l5 9h-10z`, class: "hollow" }, content),
    `CVaR 10 % ${marks.cvar_10.text}`);
}

/** `only.run` is a run in place of all runs of the group. */
function drawBars(div, plot, only) {
  const distribution = data.distributions[plot.distribution];
  const edges = distribution.edges;
  const runs = only && only.run !== null ? [only.run] : data.groups[plot.g].runs;
  const found = shares(distribution, runs);
  const single = only && only.run !== null;
  const top = Math.sqrt(Math.max(0.01, ...found.values()));
  const ticksShown = RATE_TICKS.filter((tick) => Math.sqrt(tick) <= 1.02 * top).filter(
    (tick, index, all) => Math.sqrt(tick) > 0.3 * top && (index === 0 || Math.sqrt(all[0]) - Math.sqrt(tick) > 0.3 * top),
  ).slice(0, 2);
  const view = plotFrame({
    width: div.clientWidth || 330, height: 84, left: BARS_LEFT, x: occupied(distribution), y: [-0.42 * top, 1.05 * top],
    yTicks: ticksShown.map(Math.sqrt), yLabels: ticksShown.map((tick) => `${100 * tick}%`),
  });
  svg("path", { d: `M${view.box.left} ${view.y(0)}H${view.box.right}`, class: "zero" }, view.root);
  const width = Math.max(1.5, Math.min(view.x(edges[1]) - view.x(edges[0]) - 0.5, 12));
  const bins = Array.from(found.keys()).sort((a, b) => a - b);
  const middle = (bin) => view.x((edges[bin] + edges[bin + 1]) / 2);
  for (const bin of bins) {
    const y = view.y(Math.sqrt(found.get(bin)));
    svg("rect", { x: middle(bin) - width / 2, y, width, height: Math.max(0, view.y(0) - y), class: "bar-of",
      style: `fill:${colourOf(plot.m)}` }, view.content);
  }
  if (!single) drawMarks(view, plot.marks, view.y(-0.24 * top));
  div.replaceChildren(view.root);
  const text = (bin) => `returns ${number(edges[bin])} to ${number(edges[bin + 1])}: ${percent(found.get(bin))} of episodes`;
  const measures = single || !plot.marks.mean ? "" :
    ` Mean ${plot.marks.mean.text}, GD ${plot.marks.gini_deviation.text}, CVaR 10 % ${plot.marks.cvar_10.text}.`;
  readable(div, `${plot.label}.${measures}`, {
    size: bins.length, at: (index) => middle(bins[index]),
    show: (index) => [[colourOf(plot.m), text(bins[index])]], hide() {},
  });
}
