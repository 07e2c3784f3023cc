// Events that differ in their text only are recognized, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventTemplate, replaceText, viewOf } from "../../src/ai/shape/event-template.ts";

function event(text: string, more = ""): Buffer {
  return Buffer.from(`data: {"id":"c1","delta":{"content":"${text}"},"index":0${more}}\n\n`);
}

function learn(): EventTemplate {
  const template = new EventTemplate();
  assert.equal(template.match(viewOf(event("a")), 0), false);
  const first = event("Hello");
  const start = first.indexOf("Hello");
  template.learn(first, [{ start, end: start + 5, kind: "text" }], "0 content");
  return template;
}

test("a template matches events with another text, and says where it is", () => {
  const template = learn();
  for (const text of ["", " world", "x".repeat(1_000), "{}[],:"]) {
    for (const before of ["", "x", "data: 1\n\n"]) {
      const raw = Buffer.concat([Buffer.from(before), event(text), Buffer.from("data: {")]);
      assert.equal(template.match(viewOf(raw), before.length), true, text);
      assert.equal(raw.toString("latin1", template.start, template.end), text);
      assert.equal(template.next, before.length + event(text).length);
    }
  }
  for (const raw of [
    event('a","usage":"'),
    event("a\\u0040b"),
    event("ä"),
    event("a\tb"),
    event("a", ',"usage":{"prompt_tokens":1}'),
    event("x".repeat(70_000)),
    event("a").subarray(0, -1),
    Buffer.from(event("a").toString().replace("c1", "c2")),
    Buffer.from('data: {"id":"c1","delta":{"content":"'),
    Buffer.alloc(0),
  ])
    assert.equal(template.match(viewOf(raw), 0), false, raw.toString());
  template.forget();
  assert.equal(template.match(viewOf(event("a")), 0), false);
});

test("each byte of an event is compared", () => {
  const template = learn();
  const raw = event("a");
  const place = raw.indexOf('"a"') + 1;
  for (let at = 0; at < raw.length; at++) {
    if (at === place) continue;
    const other = Buffer.from(raw);
    other[at]! ^= 0x04;
    assert.equal(template.match(viewOf(other), 0), false, other.toString());
  }
});

test("numbers that count events and filler may differ, if they are no personal data", () => {
  const write = (text: string, count: string, filler: string): Buffer =>
    Buffer.from(`event: d\ndata: {"n":${count},"delta":"${text}","obfuscation":"${filler}"}\n\n`);
  const template = new EventTemplate();
  const first = write("Hello", "1", "xy");
  const place = (part: string): { start: number; end: number } => {
    const start = first.indexOf(part);
    return { start, end: start + part.length };
  };
  template.learn(
    first,
    [
      { ...place("1"), kind: "count" },
      { ...place("Hello"), kind: "text" },
      { ...place("xy"), kind: "filler" },
    ],
    "0 0",
  );
  for (const [text, count, filler] of [
    ["", "0", ""],
    [" a world", "12345678901", "aB3dE5gH7jK9mNpq"],
  ] as const) {
    const raw = write(text, count, filler);
    assert.equal(template.match(viewOf(raw), 0), true, raw.toString());
    assert.equal(raw.toString("latin1", template.start, template.end), text);
    assert.equal(template.next, raw.length);
  }
  for (const [count, filler] of [
    ["", ""],
    ["-1", ""],
    ["1.5", ""],
    ["4111111111111111", ""],
    ["1", "a@b.example"],
    ["1", "AB123456C"],
    ["1", "sk-abc"],
    ["1", "abcdefghijklmnopq"],
  ] as const)
    assert.equal(template.match(viewOf(write("a", count, filler)), 0), false, `${count} ${filler}`);
});

test("an event gets another text", () => {
  const raw = event("Hello");
  const start = raw.indexOf("Hello");
  for (const text of ["", "short", "ü€😀", 'with "quotes"\n'])
    assert.deepEqual(
      replaceText(raw, start, start + 5, JSON.stringify(text)),
      event(JSON.stringify(text).slice(1, -1)),
    );
});
