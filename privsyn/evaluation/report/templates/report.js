"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("pair");
  if (!panel) return;
  const cells = [...document.querySelectorAll(".map rect")];
  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + "%";

  const make = (tag, text, title) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (title !== undefined) element.title = title;
    return element;
  };

  // A range is broken between its ends only.
  const heading = (level, ordered) => {
    const cell = make("th", ordered ? undefined : level, level);
    if (ordered) {
      const [first, last] = level.split(" to ");
      cell.append(make("span", last ? `${first} to` : first), ...(last ? [" ", make("span", last)] : []));
      cell.className = "range";
    }
    return cell;
  };

  // One table of a pair: rows by columns of shares, each cell shaded by what `shade` says of it.
  const tabulate = (caption, rows, columns, shares, show, shade) => {
    const figure = make("figure");
    figure.tabIndex = 0; // it may scroll
    figure.append(make("figcaption", caption));
    const table = make("table");
    const head = make("tr");
    head.append(make("th"), ...columns.levels.map((level) => heading(level, columns.ordered)));
    const thead = make("thead");
    thead.append(head);
    const body = make("tbody");
    rows.levels.forEach((level, i) => {
      const line = make("tr");
      const name = heading(level, rows.ordered);
      name.scope = "row";
      line.append(name);
      columns.levels.forEach((other, j) => {
        const share = shares[i * columns.levels.length + j];
        const cell = make("td", show(share), `${rows.name}: ${level}; ${columns.name}: ${other}`);
        cell.style.background = shade(share);
        line.append(cell);
      });
      body.append(line);
    });
    table.append(thead, body);
    figure.append(table);
    return figure;
  };

  const tint = (colour, strength) =>
    `color-mix(in srgb, var(${colour}) ${(60 * Math.min(1, strength)).toFixed(1)}%, transparent)`;

  const choose = (cell) => {
    cells.forEach((other) => {
      other.classList.toggle("chosen", other === cell);
      other.setAttribute("tabindex", other === cell ? "0" : "-1");
    });
    const [row, column] = cell.dataset.pair.split("-").map(Number);
    const [rows, columns] = [data.columns[row], data.columns[column]];
    const [real, synthetic] = data.pairs[cell.dataset.pair].map((table) => table.map((x) => x / data.per_share));
    const difference = synthetic.map((share, place) => share - real[place]);
    const largest = Math.max(...real, ...synthetic, 1e-9);
    const furthest = Math.max(...difference.map(Math.abs), 1e-9);
    const plain = (share) => (share ? (share < 0.0005 ? "<0.1%" : percent(share)) : "·");
    const signed = (share) => (Math.abs(share) < 0.0005 ? "·" : (share > 0 ? "+" : "−") + percent(Math.abs(share)));
    const shaded = (share) => tint("--map", share / largest);
    const tables = make("div");
    tables.className = "tables";
    tables.append(
      tabulate("real", rows, columns, real, plain, shaded),
      tabulate("synthetic", rows, columns, synthetic, plain, shaded),
      tabulate("synthetic less real", rows, columns, difference, signed, (share) =>
        tint(share > 0 ? "--synthetic" : "--map", Math.abs(share) / furthest)),
    );
    const off = data.matrices.error[row][column];
    panel.replaceChildren(make("h3", `${rows.name} × ${columns.name}: ${percent(off)} off`), tables);
  };

  // What the map shades: the error, or how far two columns depend on each other in either table.
  const show = (matrix) => {
    const values = cells.map((cell) => {
      const [row, column] = cell.dataset.pair.split("-").map(Number);
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
    const button = make("button", text);
    button.type = "button";
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
    let [row, column] = cell.dataset.pair.split("-").map(Number);
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
})();
