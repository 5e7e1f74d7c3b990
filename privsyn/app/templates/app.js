"use strict";

// All screens work without this file: it filters, slides and shows progress.

for (const label of document.querySelectorAll("label[hidden]")) label.hidden = false;

for (const button of document.querySelectorAll("button[data-busy]")) {
  button.addEventListener("click", () => {
    // Not before the form is sent: a disabled button is no part of it.
    setTimeout(() => {
      button.textContent = button.dataset.busy;
      button.disabled = true;
    });
  });
}
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // what Back brings may be older than the choices
});

function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
}
window.addEventListener("hashchange", reveal);
reveal();

const columns = [...document.querySelectorAll(".column")];
const needs = document.getElementById("needs");
const find = document.getElementById("find");
function filter() {
  const word = find.value.trim().toLowerCase();
  for (const column of columns) {
    const wanted = (!needs.checked || column.classList.contains("needs")) && column.dataset.name.includes(word);
    column.hidden = !wanted;
  }
  const confirm = document.querySelector("button[value^=confirm]");
  if (confirm) confirm.hidden = word !== ""; // nobody confirms what is not shown
  const folded = document.getElementById("folded");
  if (folded && (needs.checked || word)) folded.open = true;
}
if (needs) {
  needs.addEventListener("change", filter);
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it would press the first button
  });
}

const slider = document.getElementById("slider");
if (slider) {
  const epsilons = JSON.parse(slider.dataset.epsilons);
  const all = JSON.parse(slider.dataset.all);
  const guesses = JSON.parse(slider.dataset.guesses);
  const epsilon = document.getElementById("epsilon");
  const show = () => {
    const value = Number(epsilon.value.replace(",", "."));
    const place = all.findIndex((known) => known >= value - 1e-9); // the next above: the guess is never too small
    document.getElementById("guess").textContent = value > 0 && place >= 0 ? guesses[place] : 100;
  };
  slider.addEventListener("input", () => {
    epsilon.value = epsilons[slider.value];
    slider.setAttribute("aria-valuetext", `epsilon ${epsilons[slider.value]}`);
    show();
  });
  epsilon.addEventListener("input", show);
}

if (document.getElementById("progress")) {
  const events = new EventSource("progress");
  const bar = document.getElementById("bar");
  const stages = [...document.querySelectorAll("#stages li")];
  events.onmessage = (event) => {
    const step = JSON.parse(event.data);
    const said = document.getElementById("stage");
    stages.forEach((stage, place) => {
      stage.className = place < step.stage ? "over" : place === step.stage ? "now" : "";
      if (place === step.stage && said.textContent !== stage.textContent) said.textContent = stage.textContent;
    });
    if (step.total) {
      bar.max = step.total;
      bar.value = step.done;
    } else bar.removeAttribute("value");
    if (step.spent) {
      document.getElementById("spent").textContent =
        "The first question was asked: epsilon is spent. If you stop now, a model is kept only if it was ready.";
    }
  };
  events.addEventListener("end", () => {
    events.close();
    location.replace(document.getElementById("progress").dataset.next); // no such screen yet: back to this one
  });
}
