// Composed messages: an independent parser reads what was put in, and no line can be misread.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import PostalMime from "postal-mime";
import { composeMessage, type MessageContent } from "../../src/message/compose.ts";

const BASE: MessageContent = {
  headerId: "<1@shop.example>",
  dateMs: 0,
  from: { name: "", local: "a", domain: "shop.example", address: "a@shop.example" },
  to: [{ name: "", local: "b", domain: "example.org", address: "b@example.org" }],
  cc: [],
  replyTo: [],
  subject: "Hello",
  text: "Hello",
  attachments: [],
  headers: [],
};

const visible = fc.string({ unit: "grapheme", maxLength: 300 }).map((text) =>
  text
    .replaceAll(/[\p{C}\u2028\u2029]/gu, "")
    .replaceAll(/\s+/gu, " ")
    .trim(),
);

function checkLines(bytes: Buffer): void {
  const text = bytes.toString("latin1");
  assert.doesNotMatch(text, /[^\r]\n|\r[^\n]|^\n|\r$/, "only CRLF");
  // oxlint-disable-next-line no-control-regex -- everything else must be encoded
  assert.match(text, /^[\t\r\n\x20-\x7e]*$/, "only 7 bit");
  for (const line of text.split("\r\n")) assert.ok(line.length <= 998, `${line.length}`);
}

test("subjects and names of any characters arrive unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(visible, visible, async (subject, name) => {
      const to = [{ ...BASE.to[0]!, name: name.replaceAll(/[@<>]/g, "") }];
      const bytes = composeMessage({ ...BASE, subject, to });
      checkLines(bytes);
      const mail = await PostalMime.parse(bytes);
      assert.equal(mail.subject ?? "", subject);
      assert.deepEqual(mail.to, [{ name: to[0]!.name.trim(), address: "b@example.org" }]);
    }),
    { numRuns: 300 },
  );
});

test("file names of 255 characters arrive unchanged, on lines of at most 78", async () => {
  for (const character of ["\u00e9", "\u4e2d", "\ud83d\ude00"]) {
    const filename = `${character.repeat(250)}.pdf`;
    const content = Buffer.from("x");
    const attachments = [{ filename, contentType: "application/pdf", content }];
    const bytes = composeMessage({ ...BASE, attachments });
    for (const line of bytes.toString("latin1").split("\r\n")) {
      assert.ok(line.length <= 78, `${line.length}`);
    }
    const mail = await PostalMime.parse(bytes);
    assert.equal(mail.attachments[0]!.filename, filename);
  }
});

test("texts of any characters and line breaks arrive unchanged", async () => {
  const texts = fc.string({ unit: "binary", maxLength: 3_000 }).map((text) => text.toWellFormed());
  await fc.assert(
    fc.asyncProperty(texts, texts, async (text, html) => {
      const bytes = composeMessage({ ...BASE, text: `x${text}`, html: `<p>${html}` });
      checkLines(bytes);
      const mail = await PostalMime.parse(bytes);
      const normalize = (one: string): string => one.replaceAll(/\r\n|\r|\n/g, "\n").trimEnd();
      assert.equal(normalize(mail.text ?? ""), normalize(`x${text}`));
      assert.equal(normalize(mail.html ?? ""), normalize(`<p>${html}`));
    }),
    { numRuns: 300 },
  );
});

test("attachments of any bytes and names arrive unchanged", async () => {
  const names = visible
    .filter((name) => name !== "" && !/[/\\]/.test(name))
    .map((name) => name.slice(0, 80));
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), names, async (content, filename) => {
      const attachments = [
        { filename: filename.toWellFormed(), contentType: "application/x-test", content },
      ];
      const bytes = composeMessage({ ...BASE, attachments });
      checkLines(bytes);
      const mail = await PostalMime.parse(bytes);
      assert.equal(mail.attachments[0]!.filename, filename.toWellFormed());
      assert.deepEqual(new Uint8Array(mail.attachments[0]!.content as ArrayBuffer), content);
    }),
    { numRuns: 200 },
  );
});

test("many recipients are folded into lines", async () => {
  const cc = Array.from({ length: 40 }, (_, index) => ({
    name: `Recipient Number ${index}`,
    local: `recipient${index}`,
    domain: "example.org",
    address: `recipient${index}@example.org`,
  }));
  const bytes = composeMessage({ ...BASE, cc, headers: [["X-Long", "word ".repeat(150).trim()]] });
  checkLines(bytes);
  const mail = await PostalMime.parse(bytes);
  assert.equal(mail.cc?.length, 40);
  assert.ok(
    bytes
      .toString()
      .split("\r\n")
      .every((line) => line.length <= 78),
  );
});
