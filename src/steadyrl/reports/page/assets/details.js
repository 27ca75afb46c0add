// The details of a method or a run, in a dialog: what its name in a table or its point in a frontier leads to.

const dialog = document.getElementById("details");

function copyButton(text) {
  const button = node("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", () => {
    const done = () => { button.textContent = "Copied"; };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, () => {});
    else {
      const area = node("textarea", {}, text);
      button.after(area);
      area.select();
      if (document.execCommand("copy")) done();
      area.remove();
      button.focus();
    }
  });
  return button;
}

/** A command that has no line break within the name of an option. */
function commandCode(text) {
  const parts = text.split(/(?<!\S)(--[\w-]+)/);
  return node("code", {}, parts.map((part, index) => (index % 2 ? node("span", {}, part) : part)));
}

function listOf(pairs) {
  return node("dl", {}, pairs.flatMap(([term, content]) => [node("dt", {}, term), node("dd", {}, content)]));
}

/** A plot of the page, drawn again for a single group or run. */
function detailPlot(title, plot, only, state) {
  const div = node("div", { class: "plot" });
  const figure = node("figure", {}, [node("figcaption", {}, title), div]);
  const draw = () => (plot.kind === "lines" ? drawLines(div, plot, state, only, false) : drawBars(div, plot, only));
  return { figure, draw };
}

function plotsOf(only, state) {
  const found = [];
  for (const source of ["records", "evaluations"]) {
    const plot = data.plots.find((one) => one.kind === "lines" && one.measure === "return" && one.source === source
      && one.lines.some((line) => line.g === only.group && (only.run === null || line.r.includes(only.place))));
    if (plot) found.push(detailPlot(plot.title, plot, only, { ...state, seeds: only.run === null, axis: state.axis }));
  }
  const bars = data.plots.find((one) => one.kind === "bars" && one.g === only.group);
  if (bars && (only.run === null || data.distributions[bars.distribution].runs[only.run])) {
    found.push(detailPlot("Returns of evaluation episodes", bars, only, state));
  }
  return found;
}

function runList(group) {
  return node("ul", { class: "run-list" }, group.runs.map((index) => {
    const run = data.runs[index];
    const state = run.reason ? `${run.state}: ${run.reason}` : run.state;
    return node("li", {}, [node("a", { href: `#run=${index}` }, `seed ${run.seed}`), ` ${run.name}, ${state}`]);
  }));
}

function settingsList(group) {
  const terms = group.settings.map(([name, value, differs]) => [differs ? node("b", {}, name) : name, value || " "]);
  return node("details", { open: "" }, [
    node("summary", {}, "Settings"),
    node("p", { class: "soft" }, "Those in bold differ between runs of this page."),
    listOf(terms),
  ]);
}

function showDetails(kind, index, state) {
  const run = kind === "run" ? data.runs[index] : null;
  const groupIndex = run ? run.g : index;
  const group = data.groups[groupIndex];
  if (!group) return;
  const only = { group: groupIndex, run: run ? index : null, place: run ? group.runs.indexOf(index) : null };
  const name = data.methods[group.m].name;
  const title = node("h2", { id: "details-title", tabindex: "-1" }, run ? `${name}, seed ${run.seed}` : name);
  const close = node("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const plots = plotsOf(only, state);
  const first = run || data.runs[group.runs[0]];
  const commands = first.commands.map(([what, text]) => [what, [commandCode(text), copyButton(text)]]);
  const facts = [["variant", group.variant]];
  if (run) facts.push(["run", run.name], ["state", run.reason ? `${run.state}: ${run.reason}` : run.state]);
  if (run && run.started) facts.push(["started", run.started]);
  if (!run && group.marks.mean) {
    facts.push(["mean return", group.marks.mean], ["GD", group.marks.gini_deviation], ["CVaR 10 %", group.marks.cvar_10]);
  }
  const others = node("details", run ? {} : { open: "" }, [node("summary", {}, "Runs of this method"), runList(group)]);
  dialog.replaceChildren(
    node("div", { class: "dialog-head" }, [title, close]), listOf(facts),
    node("div", { class: "grid" }, plots.map((plot) => plot.figure)),
    node("h3", {}, "Commands"), listOf(commands), others, settingsList(group),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
  plots.forEach((plot) => plot.draw());
}

/** Opens what the address names: #group=2 or #run=7. */
function followAddress(state) {
  const match = /^#(group|run)=(\d+)$/.exec(location.hash);
  if (match) showDetails(match[1], Number(match[2]), state);
  else if (dialog.open) dialog.close();
}

dialog.addEventListener("close", () => {
  hideTooltip();
  document.body.appendChild(tooltip);
  if (/^#(group|run)=/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
