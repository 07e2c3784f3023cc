import assert from "node:assert/strict";
import { test } from "node:test";
import { changePayload, convertValue, type ConvertedType } from "../../src/deadletter/convert.ts";
import type { Json } from "../../src/deadletter/json-patch.ts";

test("values are converted where nothing is lost, and refused otherwise", () => {
  const cases: [Json, ConvertedType, Json | undefined][] = [
    ["12", "integer", 12],
    ["-1.5", "number", -1.5],
    ["12a", "number", undefined],
    ["", "number", undefined],
    [" 12", "number", undefined],
    ["012", "integer", undefined],
    ["1e400", "number", undefined],
    ["1.5", "integer", undefined],
    ["9007199254740993", "integer", undefined],
    [12, "string", "12"],
    [1.25, "string", "1.25"],
    [true, "string", "true"],
    ["true", "boolean", true],
    ["yes", "boolean", undefined],
    [1, "boolean", undefined],
    [null, "string", undefined],
    [{}, "string", undefined],
    [3, "integer", 3],
  ];
  for (const [value, to, expected] of cases) {
    assert.deepEqual(convertValue(value, to), expected, `${JSON.stringify(value)} to ${to}`);
  }
});

test("a change converts first and patches then; the step that fails is named", () => {
  const payload = Buffer.from('{"a":{"__proto__":"7"},"b":"x"}');
  const changed = changePayload(payload, {
    convert: [{ path: "/a/__proto__", to: "integer" }],
    patch: [{ op: "move", from: "/b", path: "/c" }],
  });
  assert.equal(String(changed), '{"a":{"__proto__":7},"c":"x"}');
  assert.equal(changePayload(payload, {}), undefined);
  const convert = (path: string) => changePayload(payload, { convert: [{ path, to: "number" }] });
  assert.throws(() => convert("/b"), /\/b is not number in another form/);
  assert.throws(() => convert("/none"), /\/none does not exist/);
});
