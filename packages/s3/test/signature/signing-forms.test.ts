// The parts of signing, compared with slower implementations.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import {
  canonicalizeQuery,
  encodeUri,
  formatBasicTime,
  parseBasicTime,
  SigningKey,
} from "../../src/signature/index.ts";

test("a signing key signs any texts, short and long in turn, as an Hmac object does", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.string({ minLength: 400, maxLength: 1_500 }),
  );
  const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(key, fc.array(text, { maxLength: 6 }), (bytes, texts) => {
      const signing = new SigningKey(Buffer.from(bytes));
      for (const each of texts) {
        assert.equal(signing.sign(each), createHmac("sha256", bytes).update(each).digest("hex"));
      }
    }),
  );
});

test("all bytes except unreserved characters are percent-encoded, as upper-case UTF-8", () => {
  const encodeByte = (byte: number) => {
    const char = String.fromCharCode(byte);
    if (/[A-Za-z0-9\-._~]/.test(char)) return char;
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  };
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.boolean(), (text, keepsSlash) => {
      const expected = Array.from(Buffer.from(text), encodeByte).join("");
      const withSlash = expected.replaceAll("%2F", "/");
      assert.equal(encodeUri(text, keepsSlash), keepsSlash ? withSlash : expected);
    }),
  );
  assert.equal(encodeUri("\ud800"), "%EF%BF%BD");
});

test("a canonical query is sorted by encoded name, then value, in any original order", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "-", "=", "/", "é"), maxLength: 3 });
  const sorted = fc.array(fc.tuple(word, word), { maxLength: 8 }).map((pairs) => ({
    pairs,
    expected: pairs
      .map(([name, value]) => [encodeUri(name), encodeUri(value)] as const)
      .sort((a, b) => (a[0] === b[0] ? Number(a[1] > b[1]) : Number(a[0] > b[0])) || -1)
      .map(([name, value]) => `${name}=${value}`)
      .join("&"),
  }));
  fc.assert(
    fc.property(sorted, ({ pairs, expected }) => {
      assert.equal(canonicalizeQuery(pairs), expected);
    }),
  );
  assert.equal(
    canonicalizeQuery(
      [
        ["b", ""],
        ["a-b", "1"],
        ["a", "2"],
      ],
      "b",
    ),
    "a=2&a-b=1",
  );
});

test("a basic time is read where it is one, and no time of the calendar is read as another", () => {
  const digits = fc.stringMatching(/^\d{14}$/);
  const shaped = digits.map((text) => `${text.slice(0, 8)}T${text.slice(8)}Z`);
  const time = fc.integer({ min: Date.UTC(100, 0), max: Date.UTC(9999, 11, 31) });
  fc.assert(
    fc.property(fc.oneof(shaped, time.map(formatBasicTime)), (text) => {
      const read = parseBasicTime(text);
      if (read !== undefined) assert.equal(formatBasicTime(read), text);
    }),
  );
  fc.assert(
    fc.property(time, (ms) => {
      assert.equal(parseBasicTime(formatBasicTime(ms)), Math.floor(ms / 1000) * 1000);
    }),
  );
  const impossible = ["20130231T000000Z", "20131301T000000Z", "20130101T240000Z"];
  const malformed = ["20130101T006000Z", "20130101T000060Z", "00500101T000000Z", "2013", ""];
  for (const text of [...impossible, ...malformed]) assert.equal(parseBasicTime(text), undefined);
});
