"use strict";
const search = document.getElementById("search");
const found = document.getElementById("found");
const fold = (text) => text.toLowerCase();
const rows = [...document.querySelectorAll(".entry")].map((element) => ({ element, text: fold(element.textContent) }));
const cubes = [...document.querySelectorAll(".cube-entry")].map((element) => ({
  element,
  text: fold(element.querySelector("summary").textContent + " " + element.querySelector(".description").textContent),
  rows: rows.filter((row) => element.contains(row.element)),
}));
const named = [...document.querySelectorAll(".lineage-entry, .profile-entry, .anomaly-entry")].map((element) => ({
  element,
  text: fold(element.querySelector("summary").textContent),
}));
const initiallyOpen = new Set([...document.querySelectorAll("details[open]")]);

const apply = () => {
  const words = fold(search.value).split(/\s+/).filter(Boolean);
  const matches = (text) => words.every((word) => text.includes(word));
  let count = 0;
  for (const row of rows) {
    row.element.hidden = !matches(row.text);
    if (!row.element.hidden) count += 1;
  }
  for (const cube of cubes) {
    const isCube = matches(cube.text);
    const shown = cube.rows.filter((row) => !row.element.hidden);
    if (isCube) for (const row of cube.rows) row.element.hidden = false;
    cube.element.hidden = !isCube && shown.length === 0;
    cube.element.open = words.length > 0 && shown.length > 0;
  }
  for (const entry of named) entry.element.hidden = !matches(entry.text);
  if (words.length === 0) for (const element of initiallyOpen) element.open = true;
  found.textContent = words.length === 0 ? "" : count === 1 ? "1 metric or member" : `${count} metrics and members`;
};

let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const element of opened) element.open = true;
});
window.addEventListener("afterprint", () => {
  for (const element of opened) element.open = false;
});
search.addEventListener("input", apply);
document.getElementById("finder").addEventListener("submit", (event) => event.preventDefault());
