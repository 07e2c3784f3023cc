// The script that judges new passwords agrees with the service.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { loadAssets } from "../../src/pages/assets.ts";
import { COMMON_PASSWORDS, PasswordPolicy } from "../../src/sign-in/password-policy.ts";

/** Exports of the script. */
interface Judging {
  judge: (
    password: string,
    known: { names: string[]; words: string[]; isCommon: (folded: string) => boolean },
  ) => { problem?: string; missing?: number; strength?: number };
  readCommon: (base64: string) => (folded: string) => boolean;
}

const path = new URL("../../src/pages/assets/strength.js", import.meta.url);
const { judge, readCommon } = (await import(path.href)) as Judging;
const list = /"(.*)"/.exec(loadAssets().commonPasswords.content.toString())![1]!;
const words = ["Acme Cloud", "login.acme.example"];
const names = ["grace", "grace@acme.example"];
const known = { names, words, isCommon: readCommon(list) };
const policy = new PasswordPolicy(words);

test("every password that the service rejects is rejected by the script, and no other", () => {
  for (const password of [
    ...COMMON_PASSWORDS,
    "",
    "short",
    "x".repeat(128),
    "x".repeat(129),
    "🐎🔋📎✂",
    "🐎🔋📎✂🐎🔋📎✂",
    "PASSWORD1",
    "grace1234!",
    "GRACE@acme.example",
    "12-Grace-34",
    "AcmeCloud!",
    "12345 678!",
    "ﬁnance-ﬁnance",
  ]) {
    const isRefused = policy.findProblem(password, names) !== undefined;
    assert.equal(judge(password, known).problem !== undefined, isRefused, password);
  }
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 140 }), (password) => {
      const { problem } = judge(password, known);
      // One of 15 000 passwords has the hash of a common one: the script advises against it, the service accepts it.
      if (problem === "common") return;
      assert.equal(problem !== undefined, policy.findProblem(password, names) !== undefined);
    }),
    { numRuns: 2_000 },
  );
});

test("the list that browsers load is small, and confuses few passwords", () => {
  assert.ok(list.length < 60_000, `${list.length} bytes`);
  const strangers = Array.from({ length: 20_000 }, (_, index) => `stranger ${index * 7919} here`);
  const confused = strangers.filter((text) => known.isCommon(text));
  assert.ok(confused.length < 12, `${confused.length} of 20 000`);
});

test("longer and less regular passwords are stronger", () => {
  const measure = (password: string): number | undefined => judge(password, known).strength;
  for (const password of [
    "aaaaaaaaaaaa",
    "abcdefghijk",
    "qwertzuiopqw",
    "abcabcabcabc",
    "98765432109",
  ]) {
    assert.equal(measure(password), 1, password);
  }
  assert.equal(measure("tkzpofxr"), 2);
  assert.equal(measure("Sommer2026!"), 2);
  assert.ok(measure("tkzpofxrlqwd")! > measure("tkzpofxr")!);
  assert.equal(measure("correct horse battery staple"), 4);
  assert.equal(measure("Zr7#pQ9!mW2$xK4%"), 3);
});

test("the script sends nothing", () => {
  for (const name of ["password.js", "strength.js", "codes.js", "times.js"]) {
    const text = readFileSync(new URL(`../../src/pages/assets/${name}`, import.meta.url), "utf8");
    assert.doesNotMatch(
      text,
      /fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|\.src\s*=/,
      name,
    );
    assert.doesNotMatch(text, /innerHTML|eval\(|Function\(|localStorage|sessionStorage/, name);
  }
});
