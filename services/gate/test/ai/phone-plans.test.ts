// Our check of phone numbers and that of the library whose data it uses must never differ.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import examples from "libphonenumber-js/examples.mobile.json";
import { type CountryCode, isValidPhoneNumber } from "libphonenumber-js/min";
import metadata from "libphonenumber-js/metadata.min";
import { isValidPhone } from "../../src/ai/pii/phone-plans.ts";

const RUNS = 20_000;
const COUNTRIES = Object.keys(metadata.countries) as CountryCode[];
const CODES = [
  ...Object.keys(metadata.country_calling_codes),
  ...Object.keys((metadata as unknown as { nonGeographic: object }).nonGeographic),
];
const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.nat(9), { minLength, maxLength }).map((all) => all.join(""));
const country = fc.constantFrom(...COUNTRIES);
const prefix = fc.constantFrom("", "", "0", "1", "00", "011", "8", "06", "0049", "49", "+");

/** A mobile number of the country, whole or with some digits changed. */
const mobile = fc
  .tuple(country, fc.nat(9), fc.nat(9), fc.nat(3))
  .map(([name, at, digit, removed]) => {
    const whole = (examples as Record<string, string>)[name] ?? "12345678";
    const changed = whole.slice(0, at) + String(digit) + whole.slice(at + removed);
    return { name, number: removed === 3 ? whole : changed };
  });
const codeOf = (name: CountryCode): string =>
  Object.entries(metadata.country_calling_codes).find(([, names]) => names.includes(name))![0];

const numbers = fc.oneof(
  fc.tuple(fc.constantFrom(...CODES), digits(1, 13)).map(([code, rest]) => ({
    number: `+${code} ${rest}`,
    country: undefined,
  })),
  fc.tuple(mobile, prefix).map(([{ name, number }, before]) => ({
    number: `+${codeOf(name)}-${before.replace("+", "")}${number}`,
    country: undefined,
  })),
  fc
    .tuple(mobile, prefix)
    .map(([{ name, number }, before]) => ({ number: before + number, country: name })),
  fc.tuple(mobile).map(([{ name, number }]) => ({ number: codeOf(name) + number, country: name })),
  fc
    .tuple(country, prefix, digits(3, 14))
    .map(([name, before, rest]) => ({ number: before + rest, country: name })),
);

test(`${RUNS} numbers are judged as libphonenumber judges them`, () => {
  let valid = 0;
  fc.assert(
    fc.property(numbers, ({ number, country: home }) => {
      const expected = isValidPhoneNumber(number, home);
      if (expected) valid++;
      assert.equal(isValidPhone(number, home), expected, `${number} in ${home ?? "no country"}`);
    }),
    { numRuns: RUNS },
  );
  assert.ok(valid > RUNS / 10, `${valid} of them are valid`);
});
