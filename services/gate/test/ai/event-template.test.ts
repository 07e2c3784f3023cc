// Events that differ in their text only are recognized, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventTemplate } from "../../src/ai/shape/event-template.ts";

function event(text: string, more = ""): Buffer {
  return Buffer.from(`{"id":"c1","delta":{"content":"${text}"},"index":0${more}}`);
}

test("a template matches events with another text, and says where it is", () => {
  const template = new EventTemplate();
  assert.equal(template.match(event("a")), false);
  const first = event("Hello");
  const start = first.indexOf("Hello");
  template.learn(first, start, start + 5, "0 content");
  for (const text of ["", " world", "x".repeat(1_000), "{}[],:"]) {
    const data = event(text);
    assert.equal(template.match(data), true, text);
    assert.equal(data.toString("latin1", template.start, template.end), text);
  }
  for (const data of [
    event('a","usage":"'),
    event("a\\u0040b"),
    event("ä"),
    event("a\tb"),
    event("a", ',"usage":{"prompt_tokens":1}'),
    Buffer.from('{"id":"c2","delta":{"content":"a"},"index":0}'),
    Buffer.from('{"id":"c1","delta":{"content":"'),
    Buffer.alloc(0),
  ])
    assert.equal(template.match(data), false, data.toString());
  template.forget();
  assert.equal(template.match(event("a")), false);
});
