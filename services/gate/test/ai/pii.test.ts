// Personal data in texts: what is found and what is not, and that pieces of a text are masked as the whole is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "@platform/testing/random";
import { RE2JS } from "re2js";
import { PII_KINDS } from "../../src/shared-state/index.ts";
import type { PiiSearch } from "../../src/ai/pii/entity.ts";
import { findEntities } from "../../src/ai/pii/find-entities.ts";
import { maskInPieces } from "../../src/ai/pii/mask-tree.ts";
import { MaskedText, maskText } from "../../src/ai/pii/mask-text.ts";
import { Placeholders } from "../../src/ai/pii/placeholders.ts";

const ALL: PiiSearch = { kinds: new Set(PII_KINDS), patterns: [] };
const next = createRandom(20_261_130);
/** A number from `from` to `to`. */
const between = (from: number, to: number): number =>
  from + Math.floor(next() * (to - from + 0.999));

function mask(text: string, search = ALL): string {
  return maskText(text, search, new Placeholders(false)) ?? text;
}

/** Names of what is found, with the texts. */
function find(text: string): string[] {
  return findEntities(text, ALL).map(({ start, end, name }) => `${name} ${text.slice(start, end)}`);
}

const PEM = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0B\n".repeat(20)}-----END PRIVATE KEY-----`;
const JWT = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ.${"SflKxwRJ".repeat(5)}`;

/** Texts with the entities in them; `|` is around each. */
const SAMPLES: [text: string, name: string][] = [
  ["write to |anna.mueller+x@mail.example.co.uk| today", "EMAIL"],
  ["(|a@b.io|), please", "EMAIL"],
  ["<|oneil_1@ex-ample.museum|>", "EMAIL"],
  ["请发邮件到|test@example.com|，谢谢", "EMAIL"],
  ["|jürgen@müller.de|", "EMAIL"],
  ["card |4111 1111 1111 1111| thanks", "CARD"],
  ["card |4111-1111-1111-1111|.", "CARD"],
  ["|5555555555554444|", "CARD"],
  ["amex |3782 822463 10005|", "CARD"],
  ["|6011111111111117|", "CARD"],
  ["|2223003122003222|", "CARD"],
  ["IBAN |DE89 3704 0044 0532 0130 00|, ok", "IBAN"],
  ["|GB82WEST12345698765432|", "IBAN"],
  ["|fr14 2004 1010 0505 0001 3m02 606|", "IBAN"],
  ["|CH93-0076-2011-6238-5295-7|", "IBAN"],
  ["call |+49 30 901820| now", "PHONE"],
  ["|+1 (415) 555-2671|", "PHONE"],
  ["|0044 20 7946 0958|", "PHONE"],
  ["|(415) 555-2671|", "PHONE"],
  ["|415-555-2671| is it", "PHONE"],
  ["Tel.: |030 901820|", "PHONE"],
  ["my phone is |01512 3456789|", "PHONE"],
  ["SSN |536-90-4399|", "NATIONAL_ID"],
  ["NINO |AB123456C| and", "NATIONAL_ID"],
  ["NINO |AB 12 34 56 C|.", "NATIONAL_ID"],
  ["DNI |12345678Z|", "NATIONAL_ID"],
  ["DNI |12345678-Z|", "NATIONAL_ID"],
  ["NIE |X1234567L|", "NATIONAL_ID"],
  ["NIE |X-1234567-L|", "NATIONAL_ID"],
  ["CF |RSSMRA85T10A562S|", "NATIONAL_ID"],
  ["CPF |529.982.247-25|", "NATIONAL_ID"],
  ["|52998224725|", "NATIONAL_ID"],
  ["BSN |111222333|", "NATIONAL_ID"],
  ["PESEL |44051401359|", "NATIONAL_ID"],
  ["|811218-9876|", "NATIONAL_ID"],
  ["|19811218-9876|", "NATIONAL_ID"],
  ["AHV |756.9217.0769.85|", "NATIONAL_ID"],
  ["Steuer-ID |86095742719|", "NATIONAL_ID"],
  ["Steuer-ID |86 095 742 719|", "NATIONAL_ID"],
  ["NIR |2 55 08 14 168 025 38|", "NATIONAL_ID"],
  ["key |sk-proj-abcdefghij0123456789| here", "SECRET"],
  ["|AKIAIOSFODNN7EXAMPLE|", "SECRET"],
  ["|ghp_abcdefghijklmnopqrstuvwxyz0123456789|", "SECRET"],
  [`token |${JWT}| end`, "SECRET"],
  [`|${PEM}|\nrest`, "SECRET"],
];

test("each sample is found as a whole, and nothing else in it", () => {
  for (const [sample, name] of SAMPLES) {
    const [before = "", value = "", after = ""] = sample.split("|");
    const text = before + value + after;
    assert.deepEqual(find(text), [`${name} ${value}`], text);
    assert.equal(mask(text), `${before}[${name}_1]${after}`);
  }
});

test("pieces of any size are masked as the whole", () => {
  for (const [sample, name] of SAMPLES) {
    const [before = "", value = "", after = ""] = sample.split("|");
    const text = `${before}${value}${after}`;
    const expected = `${before}[${name}_1]${after}`;
    for (let cut = 0; cut <= text.length; cut++) {
      const stream = open();
      const masked = stream.push(text.slice(0, cut)) + stream.push(text.slice(cut)) + stream.end();
      assert.equal(masked, expected, `${cut} of ${text}`);
    }
    const single = open();
    const masked = Array.from(text, (character) => single.push(character)).join("");
    assert.equal(masked + single.end(), expected, text);
  }
});

function open(placeholders = new Placeholders(false), search = ALL): MaskedText {
  return new MaskedText({ search, placeholders, encode: undefined, heldMax: 256 });
}

test("a text of megabytes is masked in many turns", async () => {
  const text = `${"some words in between ".repeat(100_000)}x@y.io`;
  let turns = 0;
  let isMasked = false;
  const count = (): void => {
    turns++;
    if (!isMasked) setImmediate(count);
  };
  setImmediate(count);
  const placeholders = new Placeholders(false);
  const stream = new MaskedText({ search: ALL, placeholders, encode: undefined, heldMax: 256 });
  const masked = await maskInPieces(text, stream);
  isMasked = true;
  assert.ok(masked.endsWith(" [EMAIL_1]"));
  assert.ok(turns > 60, `${turns} turns`);
});

test("what looks alike is left alone", () => {
  const harmless = [
    "version 1.2.3, build 20261130.4, see section 4.1.1",
    "on 2026-11-30 at 12:30:45, 10.0.0.1 and 192.168.100.200",
    "4111 1111 1111 1112 is no card, and 1234567890123456 neither",
    "order 4929 and 3 items for 12.99 each, total 1,234,567.89",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "sha 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "epoch 1732924800000 and 1732924800",
    "user @anna said: a @ b, foo@localhost",
    "SSN 000-12-3456, 666-12-3456 and 912-12-3456 do not exist",
    "ISBN 978-3-16-148410-0, phone model 3310",
    "DE89 3704 0044 0532 0130 01 has a wrong check digit",
    "BG123456A is no insurance number",
    "sk-short, AKIA, eyJ and -----BEGIN CERTIFICATE-----",
    "the sum is 555-1234 or (12) 34",
    "room 415, floor 12, seat 34-56",
  ];
  for (const text of harmless) assert.deepEqual(find(text), [], text);
});

test("10 000 harmless sentences have fewer than 10 false findings", () => {
  const nouns = "order invoice ticket page room build release flight meeting chapter".split(" ");
  const verbs = "has costs took shows counts needs reached printed".split(" ");
  const makers: (() => string)[] = [
    () => String(between(0, 99_999)),
    () => `${between(1, 28)}.${between(1, 12)}.20${between(10, 30)}`,
    () => `20${between(10, 30)}-0${between(1, 9)}-1${between(0, 9)}`,
    () => `${between(0, 23)}:${between(10, 59)}`,
    () => `${between(1, 999)},${between(100, 999)}.${between(10, 99)}`,
    () => `v${between(0, 20)}.${between(0, 99)}.${between(0, 99)}`,
    () => `#${between(1, 9_999_999)}`,
    () => `${between(1, 255)}.${between(0, 255)}.${between(0, 255)}.1`,
    () => `${between(10, 99)} %`,
    () => `${between(1, 9_999)} km`,
  ];
  const pick = <T>(list: readonly T[]): T => list[between(0, list.length - 1)]!;
  const wrong: string[] = [];
  for (let index = 0; index < 10_000; index++) {
    const text = `The ${pick(nouns)} ${pick(makers)()} ${pick(verbs)} ${pick(makers)()} and ${pick(makers)()}.`;
    wrong.push(...find(text).map((found) => `${found} in ${text}`));
  }
  assert.ok(wrong.length < 10, wrong.join("\n"));
});

test("equal values have equal placeholders, others the next number", () => {
  assert.equal(
    mask("a@b.io and c@d.io, then a@b.io, card 4111111111111111"),
    "[EMAIL_1] and [EMAIL_2], then [EMAIL_1], card [CARD_1]",
  );
});

test("kinds can be chosen, and patterns added", () => {
  const search: PiiSearch = {
    kinds: new Set(["card"]),
    patterns: [{ name: "CUSTOMER", pattern: RE2JS.compile("K-[0-9]{6}") }],
  };
  assert.equal(mask("a@b.io K-123456 4111111111111111", search), "a@b.io [CUSTOMER_1] [CARD_1]");
  const stream = new MaskedText({
    search,
    placeholders: new Placeholders(false),
    encode: undefined,
    heldMax: 256,
  });
  const text = `${"word ".repeat(100)}K-123456 end`;
  const masked = Array.from(text, (character) => stream.push(character)).join("") + stream.end();
  assert.equal(masked, `${"word ".repeat(100)}[CUSTOMER_1] end`);
});

test("values come back, also split, but not for placeholders that the user has typed", () => {
  const placeholders = new Placeholders(true);
  placeholders.reserve("I typed [EMAIL_1] myself");
  assert.equal(maskText("I am a@b.io", ALL, placeholders), "I am [EMAIL_2]");
  placeholders.seal();
  const answer = "Hello [EMAIL_2], not [EMAIL_1] or [EMAIL_9], and new x@y.io";
  const expected = "Hello a@b.io, not [EMAIL_1] or [EMAIL_9], and new [EMAIL_3]";
  for (let cut = 0; cut <= answer.length; cut++) {
    const stream = new MaskedText({
      search: ALL,
      placeholders,
      encode: (value) => value,
      heldMax: 256,
    });
    const text = stream.push(answer.slice(0, cut)) + stream.push(answer.slice(cut)) + stream.end();
    assert.equal(text, expected, String(cut));
  }
});

test("no more than 256 characters are held, and prose only to the end of a word", () => {
  const stream = open();
  assert.equal(stream.push("Hello there, how are you"), "Hello there, how are ");
  assert.equal(stream.push(" today? "), "you today? ");
  const long = "x".repeat(10_000);
  let left = 0;
  for (let at = 0; at < long.length; at += 100) {
    left += stream.push(long.slice(at, at + 100)).length;
    assert.ok(at + 100 - left <= 256);
  }
  stream.end();
  const chinese = open();
  assert.equal(chinese.push("今天天气很好"), "今天天气很好");
});

/** Numbers without check digits, and the ways to complete each. */
const GENERATED: [
  country: string,
  make: () => string,
  completions: readonly string[],
  valid: number,
][] = [
  ["DE", makeGermanDigits, listNumbers(1), 1],
  [
    "FR",
    () => `1${between(50, 99)}0${between(1, 9)}75${between(100_000, 999_999)}`,
    listNumbers(2),
    1,
  ],
  ["ES", () => String(between(10_000_000, 99_999_999)), listLetters(), 1],
  ["ES", () => `Y${between(1_000_000, 9_999_999)}`, listLetters(), 1],
  ["IT", () => `RSSMRA${between(10, 99)}T10A${between(100, 999)}`, listLetters(), 1],
  [
    "PL",
    () => `${between(50, 99)}0${between(1, 9)}1${between(0, 9)}${between(1_000, 9_999)}`,
    listNumbers(1),
    1,
  ],
  [
    "SE",
    () => `${between(50, 99)}0${between(1, 9)}1${between(0, 9)}-${between(100, 999)}`,
    listNumbers(1),
    1,
  ],
  [
    "BR",
    () => `${between(100, 999)}.${between(100, 999)}.${between(100, 998)}-`,
    listNumbers(2),
    1,
  ],
  ["CH", () => `756${between(100_000_000, 999_999_999)}`, listNumbers(1), 1],
  ["IN", () => String(between(20_000_000_000, 99_999_999_999)), listNumbers(1), 1],
];

test("of all completions of a national number exactly one is valid", () => {
  const search: PiiSearch = { kinds: new Set(["national_id"]), patterns: [] };
  for (const [country, make, completions, valid] of GENERATED) {
    for (let round = 0; round < 30; round++) {
      const start = make();
      const found = completions.filter((end) => {
        const entities = findEntities(`id ${start}${end} x`, search);
        // Parts of it may be the number of another country.
        return entities.some(
          ({ start: at, end: to }) => at === 3 && to === 3 + `${start}${end}`.length,
        );
      });
      // Eleven digits alone may be the number of another country.
      const most = country === "PL" ? valid + 1 : valid;
      const isRight = found.length >= valid && found.length <= most;
      assert.ok(isRight, `${country} ${start}: ${found.join()}`);
    }
  }
  // One of eleven has no check digit.
  let dutch = 0;
  for (let round = 0; round < 300; round++) {
    const start = String(between(10_000_000, 99_999_999));
    const found = listNumbers(1).filter((end) => findEntities(start + end, search).length > 0);
    assert.ok(found.length <= 1, start);
    dutch += found.length;
  }
  assert.ok(dutch > 240 && dutch < 300, String(dutch));
});

function listNumbers(digits: number): string[] {
  return Array.from({ length: 10 ** digits }, (_, number) => String(number).padStart(digits, "0"));
}

function listLetters(): string[] {
  return Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

// Ten digits of which one occurs twice, and not at the beginning a zero.
function makeGermanDigits(): string {
  const digits = Array.from("123456789").sort(() => next() - 0.5);
  const [a, b, ...rest] = [...digits, digits[between(0, 7)]!];
  return `${a}${b} ${rest.slice(0, 3).join("")} ${rest.slice(3, 6).join("")} ${rest.slice(6).join("")}`;
}
