"use strict";
(() => {
  const make = (tag, text) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Search over the names of columns and the values shown.
  const figures = [...document.querySelectorAll(".tiles figure")];
  const search = document.getElementById("search");
  search.parentElement.hidden = figures.length < 2;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    figures.forEach((figure) => {
      figure.hidden = !figure.textContent.toLowerCase().includes(wanted);
    });
    const left = figures.filter((figure) => !figure.hidden).length;
    document.getElementById("found").textContent = wanted ? `${left} of ${figures.length} columns` : "";
  });

  const pairs = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("pair");
  if (!panel) return;
  const [first, second] = ["first", "second"].map((name) => document.getElementById(name));
  const names = [...new Set(pairs.flatMap((pair) => pair.columns))].sort();
  const partners = (name) =>
    pairs.filter((pair) => pair.columns.includes(name)).map((pair) => pair.columns.find((other) => other !== name));
  const between = (a, b) => pairs.find((pair) => pair.columns.includes(a) && pair.columns.includes(b));
  const whole = (count) => Math.max(0, count).toLocaleString("en");
  let shown;

  // One table, rows by columns; the more rows a cell has, the darker it is.
  const show = () => {
    shown = between(first.value, second.value);
    const [rows, columns] = shown.levels;
    const most = Math.max(...shown.estimate, 1);
    const table = make("table");
    const caption = make("caption");
    // A phone shows one block for each row of the table: neither down nor across.
    caption.append(shown.columns[0], make("span", " (down)"), ` × ${shown.columns[1]}`, make("span", " (across)"));
    caption.append(": estimated counts, with 95% intervals (†: outside its interval; trust the interval)");
    table.append(caption);
    const head = make("tr");
    head.append(make("td"), ...columns.map((level) => Object.assign(make("th", level), { scope: "col" })));
    const thead = make("thead");
    thead.append(head);
    const body = make("tbody");
    rows.forEach((level, i) => {
      const line = make("tr");
      line.append(Object.assign(make("th", level), { scope: "row" }));
      columns.forEach((column, j) => {
        const place = i * columns.length + j;
        const inside = shown.low[place] <= shown.estimate[place] && shown.estimate[place] <= shown.high[place];
        const cell = make("td", whole(shown.estimate[place]) + (inside ? "" : "†"));
        cell.dataset.label = column;
        // A phone leaves out cells that are as good as empty.
        cell.classList.toggle("empty", shown.estimate[place] < 0.5 && shown.low[place] <= 0);
        cell.append(make("span", `${whole(shown.low[place])}–${whole(shown.high[place])}`));
        const share = (45 * Math.max(0, shown.estimate[place])) / most;
        cell.style.background = `color-mix(in srgb, var(--map) ${share.toFixed(1)}%, transparent)`;
        line.append(cell);
      });
      line.classList.toggle("empty", !line.querySelector("td:not(.empty)"));
      body.append(line);
    });
    table.append(thead, body);
    const scroll = make("div");
    Object.assign(scroll, { className: "wide", tabIndex: 0, role: "group", ariaLabel: "Table of the pair; it may scroll" });
    scroll.append(table);
    const left = shown.omitted.map((many, side) => (many ? `${many} less frequent values of ${shown.columns[side]} are not shown. ` : ""));
    const empty = body.querySelectorAll("td.empty").length;
    const note = Object.assign(make("p", `${empty} counts of 0, with intervals from 0, are left out.`), { className: "on-phone", hidden: !empty });
    panel.replaceChildren(scroll, note, make("p", left.join("")));
  };

  const fill = (select, options, wanted) => {
    select.replaceChildren(...options.map((name) => Object.assign(make("option", name), { value: name })));
    if (options.includes(wanted)) select.value = wanted;
  };
  const choose = () => {
    fill(second, partners(first.value), second.value);
    show();
  };
  fill(first, names, pairs[0].columns[0]);
  fill(second, partners(first.value), pairs[0].columns[1]);
  first.addEventListener("change", choose);
  second.addEventListener("change", show);

  // A click on the map chooses its pair too; the two lists are for the keyboard.
  document.querySelectorAll(".map rect").forEach((cell) => {
    const pair = pairs[Number(cell.dataset.pair)];
    if (!pair) return;
    cell.addEventListener("click", () => {
      first.value = pair.columns[0];
      fill(second, partners(first.value), pair.columns[1]);
      show();
      panel.scrollIntoView({ block: "nearest" });
    });
  });

  // The CSV of the chosen pair, made when it is asked for.
  document.getElementById("save").addEventListener("click", () => {
    const safe = (text) => (/^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text); // no formula in a spreadsheet
    const quote = (text) => `"${safe(String(text)).replaceAll('"', '""')}"`;
    const lines = [[...shown.columns, "estimate", "low", "high"].map(quote).join(",")];
    shown.estimate.forEach((count, place) => {
      const [i, j] = [Math.floor(place / shown.levels[1].length), place % shown.levels[1].length];
      lines.push([quote(shown.levels[0][i]), quote(shown.levels[1][j]), count, shown.low[place], shown.high[place]].join(","));
    });
    const link = make("a");
    link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(lines.join("\r\n"))}`;
    link.download = "pair.csv";
    link.click();
  });
  document.getElementById("explore").hidden = false;
  show();
})();
