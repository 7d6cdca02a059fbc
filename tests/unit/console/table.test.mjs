import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./modules.mjs";
import { pretendPage } from "./page.mjs";

pretendPage();
const { PagedTable } = await load("table.mjs");

// Rows 0 to 9 in pages of three, sorted by their remainder when divided by five; and how often a key was asked for.
function made() {
  const keys = { asked: 0 };
  const key = (row) => {
    keys.asked += 1;
    return row.id % 5;
  };
  const columns = [
    { label: "Remainder", text: (row) => String(row.id % 5), key, numeric: true },
    { label: "Row", text: (row) => String(row.id), key: (row) => row.id, numeric: true },
  ];
  const table = new PagedTable({ caption: "Rows", columns, idOf: (row) => row.id, size: 3, order: 0 });
  table.update(Array.from({ length: 10 }, (_, id) => ({ id })));
  return { table, keys };
}

const named = (table, name) => table.element.all.filter((one) => one.name === name);
const shown = (table) => table.body.children.map((row) => Number(row.children[1].children[0]));
const sortBy = (table, label) =>
  named(table, "button")
    .find((one) => one.textContent === label)
    .listeners.click();

test("a table turns to the page of a row, and sorts no more than its rows and its order change", () => {
  const { table, keys } = made();
  assert.deepEqual(shown(table), [0, 5, 1]);
  const { asked } = keys;
  table.turnTo(8);
  assert.deepEqual(shown(table), [0, 5, 1]);
  table.draw();
  assert.deepEqual(shown(table), [3, 8, 4]);
  table.turnTo("gone");
  table.draw();
  assert.deepEqual(shown(table), [3, 8, 4]);
  assert.equal(keys.asked, asked);
});

test("equal rows are in the order in which they came, whatever they were sorted by before", () => {
  const { table } = made();
  sortBy(table, "Row");
  assert.deepEqual(shown(table), [9, 8, 7]);
  sortBy(table, "Remainder");
  assert.deepEqual(shown(table), [4, 9, 3]);
  sortBy(table, "Remainder");
  assert.deepEqual(shown(table), [0, 5, 1]);
  table.turnTo(3);
  table.update([{ id: 3 }]);
  assert.deepEqual(shown(table), [3]);
});
