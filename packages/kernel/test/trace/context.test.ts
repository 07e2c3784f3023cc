// Trace context: accepted, rejected and truncated headers by the W3C recommendation.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { formatTraceparent, normalizeTraceState, parseTraceContext } from "@platform/kernel/trace";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

const cases: [name: string, header: string, sampled: boolean | undefined][] = [
  ["version 00, sampled", `00-${TRACE}-${SPAN}-01`, true],
  ["version 00, not sampled", `00-${TRACE}-${SPAN}-00`, false],
  ["unknown flags are ignored", `00-${TRACE}-${SPAN}-fe`, false],
  ["a future version with the fields of 00", `cc-${TRACE}-${SPAN}-01`, true],
  ["a future version with more fields", `cc-${TRACE}-${SPAN}-01-what-the-future-brings`, true],
  ["a future version with rubbish after the flags", `cc-${TRACE}-${SPAN}-01.x`, undefined],
  ["version ff", `ff-${TRACE}-${SPAN}-01`, undefined],
  ["version 00 with more fields", `00-${TRACE}-${SPAN}-01-x`, undefined],
  ["version 00 with a trailing dash", `00-${TRACE}-${SPAN}-01-`, undefined],
  ["an all-zero trace id", `00-${"0".repeat(32)}-${SPAN}-01`, undefined],
  ["an all-zero parent id", `00-${TRACE}-${"0".repeat(16)}-01`, undefined],
  ["upper case", `00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
  ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`, undefined],
  ["flags of one digit", `00-${TRACE}-${SPAN}-1`, undefined],
  ["white space around", ` 00-${TRACE}-${SPAN}-01`, undefined],
  ["a line break after", `00-${TRACE}-${SPAN}-01\n`, undefined],
  ["a header beyond its bound", `cc-${TRACE}-${SPAN}-01-${"x".repeat(300)}`, undefined],
  ["nothing", "", undefined],
];

for (const [name, header, sampled] of cases) {
  test(`traceparent: ${name}: ${sampled === undefined ? "rejected" : "accepted"}`, () => {
    const context = parseTraceContext(header);
    if (sampled === undefined) assert.equal(context, undefined);
    else assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, sampled, traceState: "" });
  });
}

test("a formatted context is parsed unchanged", () => {
  const hex = (length: number): fc.Arbitrary<string> =>
    fc
      .array(fc.constantFrom(..."0123456789abcdef".split("")), {
        minLength: length,
        maxLength: length,
      })
      .map((digits) => digits.join(""))
      .filter((id) => !/^0+$/.test(id));
  fc.assert(
    fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
      const context = { traceId, spanId, sampled, traceState: "" };
      assert.deepEqual(parseTraceContext(formatTraceparent(context)), context);
    }),
  );
});

test("arbitrary texts never cause an exception", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (traceparent, tracestate) => {
      parseTraceContext(traceparent, tracestate);
      assert.ok(normalizeTraceState(tracestate).length <= 512);
    }),
  );
});

test("tracestate keeps its order, without white space and empty members", () => {
  assert.equal(normalizeTraceState("b=2 \t, a=1,,t@v=x y"), "b=2,a=1,t@v=x y");
});

test("tracestate with an invalid key, an invalid value or a duplicate key is dropped", () => {
  for (const bad of ["a", "A=1", "a=1,b", "a=x=y", "a=", "a=\u0000", "a=é", "a=1,a=2", "=1"]) {
    assert.equal(normalizeTraceState(`ok=1,${bad}`), "", bad);
  }
});

test("tracestate has at most 32 members", () => {
  const members = Array.from({ length: 33 }, (_, index) => `k${index}=v`);
  assert.equal(normalizeTraceState(members.slice(1).join(",")), members.slice(1).join(","));
  assert.equal(normalizeTraceState(members.join(",")), "");
});

test("beyond 512 characters, long members of tracestate are removed first, then the last ones", () => {
  const long = `long=${"x".repeat(200)}`;
  const short = Array.from({ length: 30 }, (_, index) => `k${index}=${"v".repeat(14)}`);
  assert.equal(
    normalizeTraceState([long, ...short.slice(0, 20)].join()),
    short.slice(0, 20).join(),
  );
  const cut = normalizeTraceState(short.join());
  assert.ok(cut.length <= 512 && cut.length > 480);
  assert.ok(short.join().startsWith(`${cut},`));
});
