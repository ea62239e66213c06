// The table of all tasks: filtered and sorted here, from what tasks.js holds. Texts are strangers': no HTML is made of them.
"use strict";

const PAGE = 100;
const CHOICES = ["repo_name", "classification", "difficulty", "month", "replays"];
const DIFFICULTIES = ["easy", "medium", "hard"];
const byId = (id) => document.getElementById(id);
const words = (text) => text.replaceAll("_", " ");

const tasks = window.DATA.rows.map((row) => {
  const task = Object.fromEntries(window.DATA.columns.map((name, place) => [name, row[place]]));
  task.text = `${task.task_id} ${task.repo_name} ${words(task.classification)}`.toLowerCase();
  return task;
});
const state = { sort: "merged", descending: true, shown: PAGE };

function fillChoices() {
  for (const name of CHOICES) {
    const values = [...new Set(tasks.map((task) => task[name]))].sort();
    byId(name).append(new Option("all", ""), ...values.map((value) => new Option(words(value), value)));
  }
}

function found() {
  const terms = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = CHOICES.map((name) => [name, byId(name).value]).filter(([, value]) => value);
  const least = Number(byId("least").value) || 0;
  return tasks.filter(
    (task) =>
      task.speedup >= least &&
      chosen.every(([name, value]) => task[name] === value) &&
      terms.every((term) => task.text.includes(term)),
  );
}

function compare(one, other) {
  const [first, second] = [one, other].map((task) =>
    state.sort === "difficulty" ? DIFFICULTIES.indexOf(task.difficulty) : task[state.sort],
  );
  const order = first < second ? -1 : first > second ? 1 : one.task_id < other.task_id ? -1 : 1;
  return state.descending ? -order : order;
}

function cell(label, ...content) {
  const made = document.createElement("td");
  made.dataset.label = label;
  made.append(...content);
  return made;
}

function line(className, text) {
  const made = document.createElement("div");
  made.className = className;
  made.textContent = text;
  return made;
}

function rowOf(task) {
  const link = document.createElement("a");
  link.href = `tasks/${encodeURIComponent(task.task_id)}.html`;
  link.textContent = task.task_id;
  const interval = task.low === null ? "" : `${task.low.toFixed(2)} to ${task.high.toFixed(2)}`;
  const speedup = cell("Speed-up", `${task.speedup.toFixed(2)}×`, line("grey", interval));
  speedup.className = "n";
  const row = document.createElement("tr");
  row.append(
    cell("Task", link, line("grey", task.verified ? "verified" : "not verified")),
    cell("Category", words(task.classification)),
    cell("Difficulty", task.difficulty),
    speedup,
    cell("Replays", task.replays),
    cell("Merged", task.merged),
  );
  return row;
}

function render() {
  const rows = found().sort(compare);
  byId("tasks").tBodies[0].replaceChildren(...rows.slice(0, state.shown).map(rowOf));
  byId("count").textContent = `${rows.length} of ${tasks.length} tasks`;
  byId("more").hidden = rows.length <= state.shown;
  for (const button of document.querySelectorAll("[data-sort]")) {
    const isSorted = button.dataset.sort === state.sort;
    button.parentElement.ariaSort = isSorted ? (state.descending ? "descending" : "ascending") : "none";
  }
}

for (const id of ["search", "least", ...CHOICES]) {
  byId(id).addEventListener("input", () => {
    state.shown = PAGE;
    render();
  });
}
for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => {
    state.descending = state.sort === button.dataset.sort ? !state.descending : button.dataset.sort === "speedup";
    state.sort = button.dataset.sort;
    render();
  });
}
byId("more").addEventListener("click", () => {
  state.shown += PAGE;
  render();
});
fillChoices();
render();
