// Colours and marks of statements: the parts are the text, and the mark is on the word at fault.
import assert from "node:assert/strict";
import { test } from "node:test";
import { colourSql, markFault } from "../src/projects/sql-words.ts";

/** The marked text, in brackets. */
function mark(text: string, fault: number | undefined): string {
  const parts = markFault(colourSql(text), fault);
  assert.equal(parts.map((part) => part.text).join(""), text);
  return parts.map(({ text: part, isFault }) => (isFault ? `[${part}]` : part)).join("");
}

test("the word at a fault is marked, at the end the last character, and nothing without one", () => {
  const text = "select 'a form' form x";
  assert.equal(mark(text, text.indexOf("form x")), "select 'a form' [form] x");
  assert.equal(mark("select (1", 9), "select ([1]");
  assert.equal(mark('from "no table" where', 5), 'from ["no table"] where');
  assert.equal(mark("select #1", 7), "select [#]1");
  assert.equal(mark("", 0), "");
  assert.equal(mark(text, undefined), text);
});
