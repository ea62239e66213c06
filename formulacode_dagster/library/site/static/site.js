// All scripts of the site: colours, search, and the table of a page, whose rows window.DATA has.
// Texts are strangers': nodes are made of them, never HTML.
"use strict";

const PAGE = 100;
const html = document.documentElement;
const words = (text) => String(text).replaceAll("_", " ");

// colours, before anything is painted
const stored = (() => {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
})();
if (stored === "dark" || stored === "light") html.dataset.theme = stored;

function switchColours(button) {
  const isDark = () =>
    html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => button.setAttribute("aria-pressed", isDark());
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    html.dataset.theme = isDark() ? "light" : "dark";
    show();
    try {
      localStorage.setItem("theme", html.dataset.theme);
    } catch {
      // private windows keep nothing
    }
  });
}

function make(tag, attributes = {}, ...content) {
  const made = tag === "svg" || tag === "path" || tag === "circle"
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

class Table {
  constructor(data, form) {
    this.data = data;
    this.form = form;
    this.rows = this.unpacked();
    this.table = document.getElementById("table");
    this.shown = PAGE;
    this.sort = data.sort;
    this.descending = true;
    this.controls = new Map();
    this.build();
    this.read();
    this.render();
  }

  unpacked() {
    const fields = Object.entries(this.data.fields).map(([name, packed]) => [
      name,
      packed.known ? packed.places.map((place) => packed.known[place]) : packed.values,
    ]);
    const count = fields.length ? fields[0][1].length : 0;
    return Array.from({ length: count }, (_, place) => {
      const row = Object.fromEntries(fields.map(([name, values]) => [name, values[place]]));
      const text = this.data.search.map((name) => row[name]).join(" ");
      row.text = `${text} ${words(text)}`.toLowerCase();
      return row;
    });
  }

  build() {
    const { facets, bounds, columns, search } = this.data;
    if (search.length) this.control("q", "Search", make("input", { type: "search", autocomplete: "off" }));
    for (const facet of facets) {
      const values = [...new Set(this.rows.map((row) => row[facet.key]))];
      if (values.length < 2) continue;
      const select = make("select");
      if (!facet.default) select.append(new Option("any", ""));
      const groups = new Map();
      for (const value of facet.default ? values : values.sort()) {
        // "category: loops" belongs to a group
        const [group, name] = value.includes(": ") ? value.split(": ", 2) : ["", value];
        if (group && !groups.has(group)) {
          groups.set(group, make("optgroup", { label: group }));
          select.append(groups.get(group));
        }
        (groups.get(group) ?? select).append(new Option(words(name), value));
      }
      this.control(facet.key, facet.label, select);
    }
    for (const bound of bounds) {
      if (this.rows.every((row) => row[bound.key] === null)) continue;
      this.control(bound.key, bound.label, make("input", { type: "number", min: "0", step: bound.step, inputmode: "decimal" }));
    }
    const heading = make("tr");
    for (const column of columns) {
      const button = make("button", { type: "button", title: column.title, "data-sort": column.key }, column.label);
      button.addEventListener("click", () => this.sortBy(column));
      heading.append(make("th", { scope: "col", class: column.kind === "number" ? "n" : "" }, button));
    }
    this.table.tHead.replaceChildren(heading);
    document.getElementById("more").addEventListener("click", () => {
      this.shown += PAGE;
      this.render();
    });
    addEventListener("hashchange", () => {
      this.read();
      this.render();
    });
  }

  control(name, label, element) {
    element.name = name;
    element.id = `filter-${name}`;
    element.addEventListener("input", () => {
      this.shown = PAGE;
      this.render();
      this.write();
    });
    this.controls.set(name, element);
    this.form.append(make("label", { for: element.id }, `${label} `, element));
  }

  default(name) {
    return this.data.facets.find((facet) => facet.key === name)?.default ?? "";
  }

  // the address has what was chosen: it can be passed on
  read() {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const [name, element] of this.controls) element.value = chosen.get(name) ?? this.default(name);
    const sort = chosen.get("sort")?.match(/^(-?)(\w+)$/);
    if (sort && this.data.fields[sort[2]]) [this.sort, this.descending] = [sort[2], sort[1] === "-"];
  }

  write() {
    const chosen = new URLSearchParams();
    for (const [name, element] of this.controls) if (element.value !== this.default(name)) chosen.set(name, element.value);
    const sort = `${this.descending ? "-" : ""}${this.sort}`;
    if (sort !== `-${this.data.sort}`) chosen.set("sort", sort);
    try {
      history.replaceState(null, "", `#${chosen}`);
    } catch {
      // an embedded page has no address of its own
    }
  }

  sortBy(column) {
    const startsHigh = column.kind && column.kind !== "link" && column.kind !== "text";
    this.descending = this.sort === column.key ? !this.descending : startsHigh;
    this.sort = column.key;
    this.render();
    this.write();
  }

  found() {
    const value = (name) => this.controls.get(name)?.value ?? "";
    const terms = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    const facets = this.data.facets.map(({ key }) => [key, value(key)]).filter(([, chosen]) => chosen);
    const bounds = this.data.bounds.filter(({ key }) => value(key)).map((bound) => [bound, Number(value(bound.key))]);
    return this.rows.filter(
      (row) =>
        facets.every(([key, chosen]) => row[key] === chosen) &&
        bounds.every(([{ key, is_least }, limit]) => row[key] !== null && (is_least ? row[key] >= limit : row[key] <= limit)) &&
        terms.every((term) => row.text.includes(term)),
    );
  }

  compare(one, other) {
    const order = this.data.columns.find(({ key }) => key === this.sort)?.order;
    const [first, second] = [one, other].map((row) => (order?.length ? order.indexOf(row[this.sort]) : row[this.sort]));
    if (first === null || second === null) return (first === null) - (second === null);
    const difference = first < second ? -1 : first > second ? 1 : 0;
    return this.descending ? -difference : difference;
  }

  render() {
    const rows = this.found().sort((one, other) => this.compare(one, other));
    this.table.tBodies[0].replaceChildren(...rows.slice(0, this.shown).map((row) => this.rowOf(row)));
    const { facets, noun } = this.data;
    const scoping = facets.filter((facet) => facet.default && this.controls.has(facet.key));
    const isOf = (row, scopes) => scopes.every(({ key }) => row[key] === this.controls.get(key).value);
    const of = this.rows.filter((row) => isOf(row, scoping));
    // a month may lack a stratum, and a stratum a month
    for (const facet of scoping) {
      const others = this.rows.filter((row) => isOf(row, scoping.filter((other) => other !== facet)));
      const possible = new Set(others.map((row) => row[facet.key]));
      for (const option of this.controls.get(facet.key).options) option.disabled = !possible.has(option.value);
    }
    document.getElementById("count").textContent = `${rows.length} of ${of.length} ${noun}`;
    document.getElementById("more").hidden = rows.length <= this.shown;
    for (const button of this.table.querySelectorAll("[data-sort]")) {
      const isSorted = button.dataset.sort === this.sort;
      button.parentElement.ariaSort = isSorted ? (this.descending ? "descending" : "ascending") : "none";
    }
  }

  rowOf(row) {
    const cells = this.data.columns.map((column, place) => {
      const content = [this.content(column, row)];
      const small = column.small ? words(row[column.small] ?? "") : column.low && column.kind === "number" ? interval(column, row) : "";
      if (small) content.push(make("span", { class: "grey small" }, small));
      const attributes = { "data-label": column.label, class: column.kind === "number" ? "n" : "" };
      return place ? make("td", attributes, ...content) : make("th", { ...attributes, scope: "row" }, ...content);
    });
    return make("tr", {}, ...cells);
  }

  content(column, row) {
    const value = row[column.key];
    if (value === null || value === undefined) return "–";
    if (column.kind === "link") {
      return make("a", { href: `${column.href}/${encodeURIComponent(row[column.target])}.html` }, value);
    }
    if (column.kind === "number") return figure(column, value);
    if (column.kind === "flag") return value ? make("span", { title: column.title }, "★ yes") : "";
    if (column.kind === "share") return share(column, row);
    return words(value);
  }
}

const figure = ({ prefix = "", suffix = "", digits = 2 }, value) => `${prefix}${value.toFixed(digits)}${suffix}`;

function interval(column, row) {
  const [low, high] = [row[column.low], row[column.high]];
  return low === null || low === undefined ? "" : `${low.toFixed(2)} to ${high.toFixed(2)}`;
}

// a number from 0 to 1, and its interval as a bar with marks at 0, a half and 1
function share(column, row) {
  const x = (value) => (5 + 150 * Math.max(0, Math.min(1, value))).toFixed(1);
  const [low, value, high] = [row[column.low], row[column.key], row[column.high]];
  const svg = make("svg", { viewBox: "0 0 160 14", width: "160", height: "14", class: "base", "aria-hidden": "true" });
  svg.append(
    make("path", { class: "axis", d: `M5 2V12M80 2V12M155 2V12M5 7H155` }),
    make("path", { class: "interval", d: `M${x(low)} 7H${x(high)}` }),
    make("circle", { cx: x(value), cy: "7", r: "3.5" }),
  );
  return make("span", { class: "share" }, make("b", {}, value.toFixed(3)), svg, make("span", { class: "grey small" }, `${low.toFixed(3)} to ${high.toFixed(3)}`));
}

// any other table of the page as CSV and JSON, as it stands there
const quoted = (text) => `"${text.replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;
const FORMS = {
  csv: (names, rows) => [names, ...rows].map((row) => row.map(quoted).join(",")).join("\n"),
  json: (names, rows) => JSON.stringify(rows.map((row) => Object.fromEntries(row.map((text, place) => [names[place], text]))), null, 1),
};

function offerFiles(table) {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent.replace(/\s+/g, " ").trim());
  for (const [form, written] of Object.entries(FORMS)) {
    const button = make("button", { type: "button", class: "file" }, form.toUpperCase());
    button.addEventListener("click", () => {
      const [names, ...rows] = [...table.rows].map(texts);
      const url = URL.createObjectURL(new Blob([`${written(names, rows)}\n`], { type: form === "csv" ? "text/csv" : "application/json" }));
      make("a", { href: url, download: `${table.dataset.name}.${form}` }).click();
      URL.revokeObjectURL(url);
    });
    table.closest("section").append(button, " ");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  switchColours(document.getElementById("colours"));
  const search = document.getElementById("search");
  const input = search?.querySelector("input");
  if (search) search.hidden = false;
  search?.addEventListener("submit", (event) => {
    event.preventDefault();
    location.href = `${search.dataset.index}#q=${encodeURIComponent(input.value)}`;
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    (document.getElementById("filter-q") ?? input).focus();
  });
  document.querySelectorAll("table[data-name]").forEach(offerFiles);
  if (window.DATA) new Table(window.DATA, document.getElementById("filters"));
});
