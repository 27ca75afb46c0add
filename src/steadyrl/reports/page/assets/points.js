// The frontier: mean against risk, where each point is a link to its runs.

function crossOf(point, view) {
  const [x, xLow, xHigh] = point.x.map(view.x), [y, yLow, yHigh] = point.y.map(view.y);
  return `M${xLow} ${y}H${xHigh}M${x} ${yLow}V${yHigh}`;
}

function drawPoint(point, view) {
  const link = svg("a", { class: `point${point.pale ? " pale" : ""}`, style: `--c:${colourOf(point.m)}` }, view.content);
  if (point.g !== null) link.setAttribute("href", `#group=${point.g}`);
  link.setAttribute("aria-label", `${point.name}: ${point.text}${point.pale ? ", dominated" : ""}`);
  svg("path", { d: crossOf(point, view), class: "cross" }, link);
  const place = [view.x(point.x[0]), view.y(point.y[0])];
  svg("circle", { cx: place[0], cy: place[1], r: 14, class: "target" }, link);
  svg("circle", { cx: place[0], cy: place[1], r: 5, class: "dot" }, link);
  const show = () => {
    const frame = link.querySelector(".dot").getBoundingClientRect();
    showTooltip([[null, point.name], [colourOf(point.m), point.text]], frame.right, frame.top);
  };
  link.addEventListener("pointerenter", show);
  link.addEventListener("focus", show);
  link.addEventListener("pointerleave", hideTooltip);
  link.addEventListener("blur", hideTooltip);
  return place;
}

/** The names of points that are not dominated, as far as they do not cover each other. */
function nameFirst(points, view) {
  const taken = [];
  for (const [point, [x, y]] of points) {
    if (point.pale) continue;
    const width = 6 * point.name.length, onTheLeft = x + 10 + width < view.box.right;
    const box = { left: onTheLeft ? x + 8 : x - 8 - width, top: y - 18, width };
    const covers = (other) => box.left < other.left + other.width && other.left < box.left + box.width
      && Math.abs(box.top - other.top) < 13;
    if (taken.some(covers) || box.left < view.box.left) continue;
    taken.push(box);
    const text = svg("text", { x: onTheLeft ? x + 8 : x - 8, y: Math.max(y - 8, 12), class: "point-name",
      "text-anchor": onTheLeft ? "start" : "end" }, view.root);
    text.textContent = point.name;
  }
}

function drawPoints(div, plot) {
  const view = plotFrame({
    width: div.clientWidth || 330, height: 330, x: plot.xrange, y: plot.range, xTitle: " ", yTitle: "mean return",
  });
  const path = (places) => places.map(([x, y], index) => `${index ? "L" : "M"}${view.x(x)} ${view.y(y)}`).join("");
  if (plot.exact.length) {
    svg("path", { d: path(plot.exact), class: "exact" }, view.content);
    for (const [x, y] of plot.exact) {
      const place = { x: view.x(x) - 5, y: view.y(y) - 5, width: 10, height: 10, class: "exact-point" };
      svg("title", {}, svg("rect", place, view.content)).textContent = `exact: mean ${number(y)} at ${number(x)}`;
    }
  }
  svg("path", { d: path(plot.hull), class: "hull" }, view.content);
  if (plot.limit) {
    const { axis, bound } = plot.limit;
    const d = axis === "x" ? `M${view.x(bound)} ${view.box.top}V${view.box.bottom}`
      : `M${view.box.left} ${view.y(bound)}H${view.box.right}`;
    svg("path", { d, class: "limit" }, view.content);
  }
  const inside = (point) => point.x[0] >= plot.xrange[0] && point.x[0] <= plot.xrange[1]
    && point.y[0] >= plot.range[0] && point.y[0] <= plot.range[1];
  const shown = plot.points.filter(inside);
  const places = shown.map((point) => [point, drawPoint(point, view)]);
  nameFirst(places, view);
  view.root.removeAttribute("aria-hidden");
  div.setAttribute("role", "group");
  div.setAttribute("aria-label", `${plot.label}, ${shown.length} points that lead to their runs`);
  div.replaceChildren(view.root);
}
