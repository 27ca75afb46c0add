// The page: its switches, when plots are drawn, and what is kept when it loads itself again.

const data = JSON.parse(document.getElementById("data").textContent);
const KEY = `steadyrl:${location.pathname}`;
const state = { hidden: {}, centre: "mean", band: "se", axis: "episodes", seeds: false, filter: "", sorted: {}, open: {} };

function stored(store, key) {
  try { return JSON.parse(store.getItem(key)) || {}; } catch { return {}; }
}

function keep(store, key, value) {
  try { store.setItem(key, JSON.stringify(value)); } catch { /* Switches are forgotten where nothing can be stored. */ }
}

const remembered = data.refresh ? stored(sessionStorage, KEY) : {};
const remember = () => { if (data.refresh) keep(sessionStorage, KEY, { ...state, scroll: window.scrollY }); };

// Plots are drawn when they come near the screen, and again when a switch or their width has changed.

const plots = Array.from(document.querySelectorAll(".plot"));
const stale = new Set(plots), near = new Set(), widths = new Map();

function draw(div) {
  const plot = data.plots[Number(div.dataset.plot)];
  const all = div.parentElement.querySelector(".all");
  if (plot.kind === "lines") drawLines(div, plot, state, null, all !== null && all.getAttribute("aria-pressed") === "true");
  else if (plot.kind === "bars") drawBars(div, plot, null);
  else drawPoints(div, plot);
  stale.delete(div);
  widths.set(div, div.clientWidth);
}

function drawNear() {
  for (const div of near) if (stale.has(div) && div.clientWidth) draw(div);
}

function redraw(kind) {
  for (const div of plots) if (!kind || data.plots[Number(div.dataset.plot)].kind === kind) stale.add(div);
  drawNear();
  remember();
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) near[entry.isIntersecting ? "add" : "delete"](entry.target);
  drawNear();
}, { rootMargin: "300px" });
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) if (widths.has(target) && widths.get(target) !== target.clientWidth) stale.add(target);
  requestAnimationFrame(drawNear);
});
plots.forEach((div) => { watcher.observe(div); sizes.observe(div); });
window.addEventListener("beforeprint", () => plots.forEach((div) => div.clientWidth && draw(div)));

// Switches

const buttons = Array.from(document.querySelectorAll(".legend button"));

function showMethods() {
  for (const button of buttons) button.setAttribute("aria-pressed", String(!state.hidden[button.dataset.method]));
  for (const row of document.querySelectorAll(".row[data-method]")) row.hidden = Boolean(state.hidden[row.dataset.method]);
}

buttons.forEach((button) => {
  if (button.getAttribute("aria-pressed") === "false") state.hidden[button.dataset.method] = true;
  button.addEventListener("click", () => {
    state.hidden[button.dataset.method] = !state.hidden[button.dataset.method];
    showMethods();
    redraw();
  });
});
for (const name of ["centre", "band", "axis"]) {
  for (const input of document.querySelectorAll(`input[name=${name}]`)) {
    input.addEventListener("change", () => { state[name] = input.value; redraw("lines"); });
  }
}
const seeds = document.getElementById("seeds");
seeds.addEventListener("change", () => { state.seeds = seeds.checked; redraw("lines"); });
document.querySelectorAll(".all").forEach((button) => button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  button.textContent = button.getAttribute("aria-pressed") === "true" ? "Show the usual range" : "Show all";
  draw(button.closest("figure").querySelector(".plot"));
}));

// Menus close when another place is clicked, or by Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.activeElement.closest(".menu[open]");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
});

// Tables

const tables = Array.from(document.querySelectorAll("table"));
tables.forEach((table, index) => makeSortable(table, (column, direction) => {
  state.sorted[index] = [column, direction];
  remember();
}));
const filter = document.getElementById("filter");
filter.addEventListener("input", () => { state.filter = filter.value; filterRows(filter.value); remember(); });

// Light or dark

const theme = document.getElementById("theme"), root = document.documentElement;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
const nameTheme = () => { theme.textContent = isDark() ? "Light page" : "Dark page"; };
const chosen = stored(localStorage, "steadyrl:theme").theme;
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  keep(localStorage, "steadyrl:theme", { theme: root.dataset.theme });
  nameTheme();
});
prefersDark.addEventListener("change", nameTheme);
nameTheme();

// What was chosen before the page loaded itself again

Object.assign(state, remembered);
for (const name of ["centre", "band", "axis"]) {
  const input = document.querySelector(`input[name=${name}][value="${CSS.escape(String(state[name]))}"]`);
  if (input) input.checked = true;
}
seeds.checked = Boolean(state.seeds);
filter.value = String(state.filter);
filterRows(filter.value);
for (const [index, [column, direction]] of Object.entries(state.sorted)) {
  if (tables[index] && tables[index].tHead.rows[0].cells[column]) sortTable(tables[index], column, direction);
}
showMethods();
const folds = Array.from(document.querySelectorAll("main details:not(.menu)"));
folds.forEach((fold, index) => {
  if (state.open[index] !== undefined) fold.open = state.open[index];
  fold.addEventListener("toggle", () => { state.open[index] = fold.open; remember(); });
});
window.addEventListener("hashchange", () => followAddress(state));
followAddress(state);

if (data.refresh) {
  const refreshing = document.getElementById("refreshing");
  refreshing.hidden = false;
  refreshing.title = `Every ${data.refresh} seconds, while steadyrl report --watch runs`;
  refreshing.addEventListener("click", () => {
    refreshing.setAttribute("aria-pressed", String(refreshing.getAttribute("aria-pressed") !== "true"));
  });
  if (remembered.scroll) window.scrollTo(0, remembered.scroll);
  window.addEventListener("scroll", remember, { passive: true });
  setInterval(() => {
    const busy = dialog.open || ["INPUT", "SUMMARY"].includes(document.activeElement.tagName) || !tooltip.hidden;
    if (!busy && refreshing.getAttribute("aria-pressed") === "true") { remember(); location.reload(); }
  }, 1000 * data.refresh);
}
