// Elements, scales, axes and the tooltip that all plots share. Text from files is always set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  if (parent) parent.appendChild(element);
  return element;
}

function node(tag, attributes, children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of [].concat(children === undefined ? [] : children)) element.append(child);
  return element;
}

/** Three significant digits, and all digits before the point: 0.0123, 8.69, 12,345. */
function number(value) {
  if (!Number.isFinite(value)) return "n/a";
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  const decimals = size >= 100 || size === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function percent(share) {
  const value = 100 * share;
  return `${(value > 0 && value < 1) || (value > 99 && value < 100) ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** 12000 -> 12k, for the ticks of an axis of episodes or steps. */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(3)}k`;
  return value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** At most `most` round values from low to high. */
function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return Number.isFinite(low) ? [low] : [];
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= most);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + 1e-9 * step; index++) {
    found.push(index * step + 0);  // + 0 turns -0 into 0.
  }
  return found;
}

/** Labels with as many decimals as the distance of the ticks needs, so that no two are the same. */
function labels(values, rate) {
  const scale = rate ? 100 : 1;
  const step = values.length > 1 ? scale * (values[1] - values[0]) : Math.abs(scale * values[0]) || 1;
  const decimals = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const wide = values.some((value) => Math.abs(value * scale) >= 1e6) || decimals > 5;
  return values.map((value) => {
    const shown = Math.abs(value) < 1e-9 * Math.abs(step) ? 0 : scale * value;
    const text = wide ? `${+shown.toPrecision(4)}` : shown.toLocaleString("en-US", {
      minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return rate ? `${text}%` : text;
  });
}

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

/** An empty plot with grid, axes and scales. `frame` has width, height, x and y as [low, high], titles, rate, and
 * `left` if the axis is to begin there: by default it leaves room for the labels. */
function plotFrame(frame) {
  const yTicks = frame.yTicks || ticks(frame.y[0], frame.y[1], 6);
  const yLabels = frame.yLabels || labels(yTicks, frame.rate);
  const widest = Math.max(1, ...yLabels.map((text) => text.length));
  const left = frame.left || Math.min(90, 12 + 6.4 * widest) + (frame.yTitle ? 16 : 0);
  const box = { left, right: frame.width - 10, top: 8, bottom: frame.height - (frame.xTitle ? 36 : 20) };
  const root = svg("svg", { width: frame.width, height: frame.height, "aria-hidden": "true", focusable: "false" });
  const x = scale(frame.x[0], frame.x[1], box.left, box.right);
  const y = scale(frame.y[0], frame.y[1], box.bottom, box.top);
  yTicks.forEach((value, index) => {
    svg("path", { d: `M${box.left} ${y(value)}H${box.right}`, class: "grid-line" }, root);
    const text = svg("text", { x: box.left - 6, y: y(value) + 3.5, class: "tick ytick" }, root);
    text.textContent = yLabels[index];
  });
  const xTicks = ticks(frame.x[0], frame.x[1], Math.max(2, Math.min(8, Math.floor((box.right - box.left) / 70))));
  const xLabels = frame.counts ? xTicks.map(short) : labels(xTicks, false);
  xTicks.forEach((value, index) => {
    svg("path", { d: `M${x(value)} ${box.top}V${box.bottom}`, class: "grid-line" }, root);
    const text = svg("text", { x: x(value), y: box.bottom + 14, class: "tick xtick" }, root);
    text.textContent = xLabels[index];
    // Labels at the ends of the axis stay inside the plot.
    const half = 3.2 * xLabels[index].length;
    if (x(value) + half > frame.width) text.setAttribute("x", frame.width - half);
  });
  if (frame.xTitle) {
    const text = svg("text", { x: (box.left + box.right) / 2, y: frame.height - 5, class: "axis-title" }, root);
    text.textContent = frame.xTitle;
  }
  if (frame.yTitle) {
    const middle = (box.top + box.bottom) / 2;
    const text = svg("text", { x: 11, y: middle, class: "axis-title", transform: `rotate(-90 11 ${middle})` }, root);
    text.textContent = frame.yTitle;
  }
  const id = `clip${plotFrame.count = (plotFrame.count || 0) + 1}`;
  const clip = svg("clipPath", { id }, root);
  const size = { x: box.left, y: box.top - 2, width: Math.max(1, box.right - box.left), height: box.bottom - box.top + 4 };
  svg("rect", size, clip);
  const content = svg("g", { "clip-path": `url(#${id})` }, root);
  return { root, content, box, x, y };
}

const tooltip = document.getElementById("tooltip");

/** Shows rows of [colour, text] beside a place on the screen; a row without colour is a heading. */
function showTooltip(rows, left, top) {
  tooltip.replaceChildren(...rows.map(([colour, text]) => {
    const spot = node("span", colour ? { class: "spot", style: `background:${colour}` } : {});
    return node("div", colour ? {} : { class: "tip-title" }, colour ? [spot, text] : [text]);
  }));
  // Within the dialog if that is open: nothing else is above it.
  (document.querySelector("dialog[open]") || document.body).appendChild(tooltip);
  tooltip.hidden = false;
  const size = tooltip.getBoundingClientRect();
  const x = left + 14 + size.width > window.innerWidth ? left - 14 - size.width : left + 14;
  tooltip.style.left = `${Math.max(4, Math.min(x, window.innerWidth - size.width - 4))}px`;
  tooltip.style.top = `${Math.max(4, Math.min(top - size.height / 2, window.innerHeight - size.height - 4))}px`;
}

function hideTooltip() {
  tooltip.hidden = true;
}

const colourOf = (method) => (method === null ? "var(--ink)" : `var(--m${method})`);
