// Learning curves: a line and a band for each method, thin lines for its seeds.

function linesShown(plot, state, only) {
  const chosen = (line) => (only ? line.g === only.group : !state.hidden[line.m]);
  return plot.lines.filter(chosen).map((line) => {
    const place = only && only.run !== null ? line.r.indexOf(only.place) : -1;
    const rows = place >= 0 ? [line.y[place]] : line.y;
    const over = state.axis === "timesteps" && line.t !== null ? line.t : line.x;
    return { ...line, rows, x: data.arrays[over], ...summarize(rows, state.centre, state.band) };
  });
}

function pathOf(x, y, xs, ys) {
  let d = "", pen = "M";
  for (let index = 0; index < xs.length; index++) {
    if (!Number.isFinite(ys[index]) || ys[index] === null) { pen = "M"; continue; }
    d += `${pen}${x(xs[index]).toFixed(1)} ${y(ys[index]).toFixed(1)}`;
    pen = "L";
  }
  return d;
}

function yRange(plot, lines, state, all) {
  if (plot.range && !(all && plot.cut)) return plot.range;
  const values = [];
  for (const line of lines) {
    values.push(...line.middle, ...(line.low || []), ...(line.high || []));
    if (state.seeds) line.rows.forEach((row) => values.push(...row));
  }
  const finite = values.filter((value) => value !== null && Number.isFinite(value));
  if (!finite.length) return [0, 1];
  let low = finite.reduce((a, b) => Math.min(a, b)), high = finite.reduce((a, b) => Math.max(a, b));
  if (plot.zero) low = 0;
  const room = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
  return [plot.zero ? 0 : low - room, high + room];
}

function drawLine(view, line, state) {
  const colour = colourOf(line.m);
  const { x, y, content } = view;
  if (line.low) {
    const back = line.x.map((_, index) => line.x.length - 1 - index);
    const edge = pathOf(x, y, line.x, line.high) + pathOf(x, y, back.map((i) => line.x[i]), back.map((i) => line.low[i]))
      .replace("M", "L");
    svg("path", { d: `${edge}Z`, class: "band", style: `fill:${colour}` }, content);
  }
  if (state.seeds && line.rows.length > 1) {
    for (const row of line.rows) {
      svg("path", { d: pathOf(x, y, line.x, row), class: "seed", style: `stroke:${colour}` }, content);
    }
  }
  const style = `stroke:${colour};stroke-dasharray:${data.methods[line.m].dash || "none"}`;
  svg("path", { d: pathOf(x, y, line.x, line.middle), class: "curve", style, "data-method": line.m }, content);
  if (line.x.length < 2) svg("circle", { cx: x(line.x[0]), cy: y(line.middle[0]), r: 4, style: `fill:${colour}` }, view.root);
}

function nearest(xs, value) {
  let best = 0;
  for (let index = 1; index < xs.length; index++) if (Math.abs(xs[index] - value) < Math.abs(xs[best] - value)) best = index;
  return best;
}

function valueText(plot, value) {
  return plot.rate ? percent(value) : number(value);
}

function describe(plot, line, index) {
  const band = line.low ? ` [${valueText(plot, line.low[index])}, ${valueText(plot, line.high[index])}]` : "";
  return `${data.methods[line.m].name} ${valueText(plot, line.middle[index])}${band}`;
}

function drawLines(div, plot, state, only, all) {
  const lines = linesShown(plot, state, only);
  div.replaceChildren();
  if (!lines.length) {
    div.append(node("p", { class: "empty" }, "No method is shown. Choose one above."));
    return;
  }
  const end = Math.max(...lines.map((line) => line.x[line.x.length - 1]));
  const unit = state.axis === "timesteps" && lines.every((line) => line.t !== null) ? "steps" : "episodes";
  const view = plotFrame({
    width: div.clientWidth || 330, height: 220, x: [0, end || 1], y: yRange(plot, lines, state, all), rate: plot.rate,
    xTitle: `training ${unit}`, counts: true,
  });
  lines.forEach((line) => drawLine(view, line, state));
  div.append(view.root);
  const ends = lines.map((line) => describe(plot, line, line.x.length - 1)).join("; ");
  readable(div, `${plot.label}. At the end: ${ends}.`, pointer(view, plot, lines, unit));
}

/** Moves a cursor along the longest line: what is there, in words and in the tooltip. */
function pointer(view, plot, lines, unit) {
  const grid = lines.reduce((a, b) => (b.x.length > a.x.length ? b : a)).x;
  const cursor = svg("path", { class: "cursor" }, view.root);
  const dots = svg("g", {}, view.root);
  const there = (at) => lines.filter((line) => at >= line.x[0] && at <= line.x[line.x.length - 1])
    .map((line) => [line, nearest(line.x, at)]).sort((a, b) => b[0].middle[b[1]] - a[0].middle[a[1]]);
  return {
    size: grid.length,
    at: (index) => view.x(grid[index]),
    show(index) {
      const place = view.x(grid[index]);
      cursor.setAttribute("d", `M${place} ${view.box.top}V${view.box.bottom}`);
      dots.replaceChildren();
      const found = there(grid[index]);
      for (const [line, i] of found) {
        svg("circle", { cx: view.x(line.x[i]), cy: view.y(line.middle[i]), r: 3.5, style: `fill:${colourOf(line.m)}` }, dots);
      }
      const heading = `${grid[index].toLocaleString("en-US")} ${unit}`;
      return [[null, heading], ...found.map(([line, i]) => [colourOf(line.m), describe(plot, line, i)])];
    },
    hide() { cursor.setAttribute("d", ""); dots.replaceChildren(); },
  };
}

/** Makes a plot a slider: pointer and arrow keys move along it, and what is there is read out and shown. */
function readable(div, label, track) {
  for (const [name, value] of Object.entries({
    role: "slider", tabindex: "0", "aria-label": label, "aria-roledescription": "plot", "aria-valuemin": 0,
    "aria-valuemax": track.size - 1, "aria-valuenow": track.size - 1, "aria-valuetext": "use the arrow keys",
  })) div.setAttribute(name, value);
  let index = track.size - 1;
  const go = (to) => {
    index = Math.max(0, Math.min(track.size - 1, to));
    const rows = track.show(index);
    div.setAttribute("aria-valuenow", index);
    div.setAttribute("aria-valuetext", rows.map(([, text]) => text).join("; "));
    const frame = div.getBoundingClientRect();
    showTooltip(rows, frame.left + track.at(index), frame.top + frame.height / 2);
  };
  const leave = () => { track.hide(); hideTooltip(); };
  div.onpointermove = div.onpointerdown = (event) => {
    const pixel = event.clientX - div.getBoundingClientRect().left;
    let best = 0;
    for (let i = 1; i < track.size; i++) if (Math.abs(track.at(i) - pixel) < Math.abs(track.at(best) - pixel)) best = i;
    go(best);
  };
  div.onpointerleave = div.onblur = leave;
  div.onkeydown = (event) => {
    const step = Math.max(1, Math.round(track.size / 40));
    const to = { ArrowLeft: index - step, ArrowDown: index - step, ArrowRight: index + step, ArrowUp: index + step,
      Home: 0, End: track.size - 1 }[event.key];
    if (to !== undefined) { event.preventDefault(); go(to); } else if (event.key === "Escape" && !tooltip.hidden) {
      event.preventDefault();  // Closes the tooltip, not the dialog around it.
      leave();
    }
  };
}
