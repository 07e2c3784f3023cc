// Codes of invalid values, from schemas and from checks of a service's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { readFault } from "@platform/kernel/errors";

const SCHEMA = z.strictObject({
  name: z.string().min(2).max(4),
  size: z.int().min(1).lt(10).optional(),
  list: z.array(z.string()).max(1).optional(),
  kind: z.enum(["a", "b"]).optional(),
  mail: z.email().optional(),
  step: z.number().multipleOf(5).optional(),
  own: z
    .string()
    .refine((text) => text === "", { error: "no", params: { code: "own_code", max: 3, bad: {} } })
    .optional(),
  plain: z
    .string()
    .refine(() => false, "no")
    .optional(),
});

const CASES: readonly [input: object, fault: object][] = [
  [{}, { code: "required" }],
  [{ name: 1 }, { code: "wrong_type", params: { expected: "string" } }],
  [{ name: "a" }, { code: "too_short", params: { min: 2 } }],
  [{ name: "abcde" }, { code: "too_long", params: { max: 4 } }],
  [
    { name: "ab", size: 1.5 },
    { code: "wrong_type", params: { expected: "int" } },
  ],
  [
    { name: "ab", size: 0 },
    { code: "too_small", params: { min: 1 } },
  ],
  [
    { name: "ab", size: 10 },
    { code: "too_large", params: { below: 10 } },
  ],
  [
    { name: "ab", list: ["", ""] },
    { code: "too_many", params: { max: 1 } },
  ],
  [
    { name: "ab", kind: "c" },
    { code: "not_allowed_value", params: { allowed: "a, b" } },
  ],
  [
    { name: "ab", mail: "x" },
    { code: "wrong_format", params: { format: "email" } },
  ],
  [
    { name: "ab", step: 7 },
    { code: "not_multiple", params: { of: 5 } },
  ],
  [
    { name: "ab", more: 1 },
    { code: "unknown_member", params: { names: "more" } },
  ],
  [
    { name: "ab", own: "x" },
    { code: "own_code", params: { max: 3 } },
  ],
  [{ name: "ab", plain: "x" }, {}],
];

for (const [input, fault] of CASES) {
  test(`${JSON.stringify(input)} is ${JSON.stringify(fault)}`, () => {
    const [issue] = SCHEMA.safeParse(input).error!.issues;
    assert.deepEqual(readFault(issue!, input), fault);
  });
}

test("lists of names are bounded", () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`member${n}`, 1]));
  const [issue] = z.strictObject({}).safeParse(many).error!.issues;
  assert.ok(String(readFault(issue!, many).params!["names"]).length < 210);
});
