"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("pair");
  const cells = [...document.querySelectorAll(".map rect")];
  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + "%";

  const make = (tag, text, more) =>
    Object.assign(document.createElement(tag), text === undefined ? {} : { textContent: text }, more);

  const tint = (colour, strength, most = 50) =>
    `color-mix(in srgb, var(${colour}) ${(most * Math.min(1, strength)).toFixed(1)}%, transparent)`;

  // A table of one pair: the levels of one column down, those of the other across, and what `fill` makes of a place.
  const tabulate = (rows, columns, heading, fill) => {
    const [table, thead, head, body] = ["table", "thead", "tr", "tbody"].map((tag) => make(tag));
    head.append(make("td"), ...columns.map((level) => Object.assign(heading(level, 1), { scope: "col" })));
    thead.append(head);
    rows.forEach((level, i) => {
      const line = make("tr");
      line.append(Object.assign(heading(level, 0), { scope: "row" }));
      line.append(...columns.map((other, j) => fill(i * columns.length + j, level, other)));
      line.classList.toggle("empty", !line.querySelector("td:not(.empty)"));
      body.append(line);
    });
    table.append(thead, body);
    return table;
  };

  // Search over the names of columns and the values shown.
  const searchColumns = (search) => {
    const figures = [...document.querySelectorAll(".tiles figure")];
    search.parentElement.hidden = figures.length < 2;
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      figures.forEach((figure) => {
        figure.hidden = !figure.textContent.toLowerCase().includes(wanted);
      });
      const left = figures.filter((figure) => !figure.hidden).length;
      // What was found shows itself; without a word, tables stay as they are.
      document.querySelectorAll("details.table").forEach((table) => {
        if (wanted) table.open = Boolean(table.querySelector("figure:not([hidden])"));
      });
      document.getElementById("found").textContent = wanted ? `${left} of ${figures.length} columns` : "";
    });
  };

  // The public page: the counts of the pair that two lists choose.
  const exploreCounts = () => {
    const [first, second] = ["first", "second"].map((name) => document.getElementById(name));
    const names = [...new Set(data.flatMap((pair) => pair.columns))].sort();
    const partners = (name) =>
      data.filter((pair) => pair.columns.includes(name)).map((pair) => pair.columns.find((other) => other !== name));
    const between = (a, b) => data.find((pair) => pair.columns.includes(a) && pair.columns.includes(b));
    // Shares are in per mille.
    const whole = (count) => (shown.share ? percent(count / 1000) : Math.max(0, count).toLocaleString("en"));
    let shown;

    // The more rows a cell has, the darker it is.
    const show = () => {
      shown = between(first.value, second.value);
      const most = Math.max(...shown.estimate, 1);
      const table = tabulate(...shown.levels, (level) => make("th", level), (place, _, column) => {
        const [count, low, high] = [shown.estimate[place], shown.low[place], shown.high[place]];
        const cell = make("td", whole(count));
        cell.dataset.label = column;
        // A phone leaves out cells that are as good as empty.
        cell.classList.toggle("empty", count < 0.5 && low <= 0);
        cell.append(make("span", `${whole(low)}–${whole(high)}`));
        cell.style.background = tint("--map", Math.max(0, count) / most, 45);
        return cell;
      });
      const caption = make("caption");
      // A phone shows one block for each row of the table: neither down nor across.
      caption.append(shown.columns[0], make("span", " (down)"), ` × ${shown.columns[1]}`, make("span", " (across)"));
      const what = shown.share ? "among the rows of each line, estimated shares" : "estimated counts";
      caption.append(`: ${what}, with ${panel.dataset.level} intervals`);
      table.prepend(caption);
      const scroll = make("div", undefined, { className: "wide", tabIndex: 0, role: "group", ariaLabel: "Table of the pair; it may scroll" });
      scroll.append(table);
      const left = shown.omitted.map((many, side) => (many ? `${many} less frequent values of ${shown.columns[side]} are not shown. ` : ""));
      const empty = table.querySelectorAll("td.empty").length;
      const note = make("p", `${empty} counts of 0, with intervals from 0, are left out.`, { className: "on-phone", hidden: !empty });
      panel.replaceChildren(make("p", shown.said), scroll, note, make("p", left.join("")));
      panel.firstChild.hidden = !shown.said;
    };

    const fill = (select, options, wanted) => {
      select.replaceChildren(...options.map((name) => make("option", name, { value: name })));
      if (options.includes(wanted)) select.value = wanted;
    };
    const choose = () => {
      fill(second, partners(first.value), second.value);
      show();
    };
    fill(first, names, data[0].columns[0]);
    fill(second, partners(first.value), data[0].columns[1]);
    first.addEventListener("change", choose);
    second.addEventListener("change", show);

    // A click on the map chooses its pair too; the two lists are for the keyboard.
    cells.forEach((cell) => {
      const pair = data[Number(cell.dataset.pair)];
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
        const numbers = [count, shown.low[place], shown.high[place]].map((x) => (shown.share ? x / 1000 : x));
        lines.push([quote(shown.levels[0][i]), quote(shown.levels[1][j]), ...numbers].join(","));
      });
      const href = `data:text/csv;charset=utf-8,${encodeURIComponent(lines.join("\r\n"))}`;
      make("a", undefined, { href, download: "pair.csv" }).click();
    });
    document.getElementById("explore").hidden = false;
    show();
  };

  // The comparison: the shares of both tables of the pair that is chosen in the map.
  const exploreShares = () => {
    // A range is broken between its ends only.
    const heading = (level, ordered) => {
      const cell = make("th", ordered ? undefined : level, { title: level });
      if (ordered) {
        const [first, last] = level.split(" to ");
        cell.append(make("span", last ? `${first} to` : first), ...(last ? [" ", make("span", last)] : []));
        cell.className = "range";
      }
      return cell;
    };

    // A table of shares, each cell shaded by what `shade` returns for it.
    const figureOf = (caption, sides, shares, show, shade) => {
      const figure = make("figure", undefined, { tabIndex: 0 }); // it may scroll
      const [rows, columns] = sides;
      const table = tabulate(rows.levels, columns.levels, (level, side) => heading(level, sides[side].ordered), (place, level, other) => {
        const cell = make("td", show(shares[place]), { title: `${rows.name}: ${level}; ${columns.name}: ${other}` });
        cell.style.background = shade(shares[place]);
        return cell;
      });
      figure.append(make("figcaption", caption), table);
      return figure;
    };

    const pairOf = (cell) => cell.dataset.pair.split("-").map(Number);

    const choose = (cell) => {
      cells.forEach((other) => {
        other.classList.toggle("chosen", other === cell);
        other.setAttribute("tabindex", other === cell ? "0" : "-1");
      });
      const [row, column] = pairOf(cell);
      const sides = [data.columns[row], data.columns[column]];
      const [real, synthetic] = data.pairs[cell.dataset.pair].map((table) => table.map((x) => x / data.per_share));
      const difference = synthetic.map((share, place) => share - real[place]);
      const largest = Math.max(...real, ...synthetic, 1e-9);
      const furthest = Math.max(...difference.map(Math.abs), 1e-9);
      const plain = (share) => (share ? (share < 0.0005 ? "<0.1%" : percent(share)) : "·");
      const signed = (share) => (Math.abs(share) < 0.0005 ? "·" : (share > 0 ? "+" : "−") + percent(Math.abs(share)));
      const shaded = (share) => tint("--map", share / largest);
      const tables = make("div", undefined, { className: "tables" });
      tables.append(
        figureOf("real", sides, real, plain, shaded),
        figureOf("synthetic", sides, synthetic, plain, shaded),
        figureOf("synthetic less real", sides, difference, signed, (share) =>
          tint(share > 0 ? "--synthetic" : "--map", Math.abs(share) / furthest)),
      );
      const off = data.matrices.error[row][column];
      panel.replaceChildren(make("h3", `${sides[0].name} × ${sides[1].name}: ${percent(off)} off`), tables);
    };

    // What the map shades: the error, or how far two columns depend on each other in either table.
    const show = (matrix) => {
      const values = cells.map((cell) => {
        const [row, column] = pairOf(cell);
        return data.matrices[matrix][row][column] ?? 0;
      });
      const largest = matrix === "error" ? Math.max(...values, 1e-9) : 1;
      cells.forEach((cell, place) => {
        cell.setAttribute("fill-opacity", (0.05 + (0.95 * values[place]) / largest).toFixed(3));
      });
      const [least, most] = document.querySelectorAll(".scale span");
      least.textContent = matrix === "error" ? "0%" : "0";
      most.textContent = matrix === "error" ? percent(largest) : "1";
    };

    const words = { error: "error", "real V": "Cramér’s V, real", "synthetic V": "Cramér’s V, synthetic" };
    const buttons = Object.entries(words).map(([matrix, text]) => {
      const button = make("button", text, { type: "button" });
      button.setAttribute("aria-pressed", String(matrix === "error"));
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        show(matrix);
      });
      return button;
    });
    document.querySelector(".switch").append(...buttons);

    // One stop of the Tab key for the whole map; arrows go to the next cell there is in their direction.
    const arrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const at = new Map(cells.map((cell) => [cell.dataset.pair, cell]));
    const beyond = (cell, [down, right]) => {
      let [row, column] = pairOf(cell);
      for (let step = 0; step < data.columns.length; step += 1) {
        [row, column] = [row + down, column + right];
        if (at.has(`${row}-${column}`)) return at.get(`${row}-${column}`);
      }
      return cell;
    };
    cells.forEach((cell) => {
      cell.addEventListener("click", () => choose(cell));
      cell.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") choose(cell);
        else if (arrows[event.key]) beyond(cell, arrows[event.key]).focus();
        else return;
        event.preventDefault();
      });
    });
    choose(cells.reduce((worst, cell) => (+cell.getAttribute("fill-opacity") > +worst.getAttribute("fill-opacity") ? cell : worst)));
  };

  // One table of answers at a time.
  const chooseAnswers = (by) => {
    const tables = [...document.querySelectorAll(".replies")];
    const show = () => tables.forEach((table, place) => {
      table.hidden = place !== Number(by.value);
      table.toggleAttribute("data-later", table.hidden);
    });
    by.closest(".choice").hidden = false;
    by.addEventListener("change", show);
    show();
  };

  // A link to a folded part opens it.
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const inside = target.querySelector(":scope > details.part");
    if (inside) inside.open = true;
    for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();

  const by = document.getElementById("by");
  if (by) chooseAnswers(by);
  const search = document.getElementById("search");
  if (search) searchColumns(search);
  if (panel) (document.getElementById("explore") ? exploreCounts : exploreShares)();
})();
