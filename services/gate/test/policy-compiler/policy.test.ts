// Compiled policies mean what the gateway's own policies mean.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Parse, RequestParser } from "@platform/http1";
import { readPolicyText } from "@platform/kernel/route-rules";
import { SecondHost } from "@platform/testing/second-host";
import { FieldList, type GuestMessages, HttpGuest, compileHttpModule } from "@platform/wasm/http";
import fc from "fast-check";
import { Policy } from "../../src/filter/identity/policy.ts";
import { compilePolicy, readPolicyFile } from "../../src/policy-compiler/compile-policy.ts";

const POLICIES = Number(process.env["PLATFORM_POLICIES"] ?? 300);
const REQUESTS = 20;

interface TestRequest {
  method: string;
  path: string;
  query: string;
  fields: [string, string][];
}

const environment = {
  config: Buffer.alloc(0),
  fuelPerCall: 5_000_000,
  log: () => undefined,
  isLogged: () => false,
};

function decideCompiled(guest: HttpGuest, { method, path, query, fields }: TestRequest): string {
  const messages: GuestMessages = {
    method,
    uri: `${path}${query}`,
    protocolVersion: "HTTP/1.1",
    sourceAddress: "",
    status: 200,
    requestFields: new FieldList(fields),
    responseFields: new FieldList(),
    readRequestBody: () => ({ bytes: Buffer.alloc(0), isLast: true }),
    readResponseBody: () => Buffer.alloc(0),
    requestBodyBytesMax: 0,
    responseBodyBytesMax: 1_000,
  };
  const verdict = guest.handleRequest(messages);
  assert.ok(!(verdict instanceof Promise));
  if (!verdict.next) {
    assert.equal(messages.status, 403);
    assert.equal(JSON.parse(String(guest.responseBody)).code, "policy_denied");
  }
  guest.endRequest();
  return verdict.next ? "allow" : "deny";
}

function decideBySecondHost(
  host: SecondHost,
  { method, path, query, fields }: TestRequest,
): string {
  const exchange = {
    method,
    uri: `${path}${query}`,
    version: "HTTP/1.1",
    source: "",
    status: 200,
    request: { fields, body: new Uint8Array() },
    response: { fields: [], body: new Uint8Array() as Uint8Array },
  };
  const isAllowed = host.handleRequest(exchange) !== undefined;
  if (!isAllowed) {
    assert.equal(exchange.status, 403);
    assert.equal(JSON.parse(Buffer.from(exchange.response.body).toString()).code, "policy_denied");
  }
  return isAllowed ? "allow" : "deny";
}

function decideInterpreted(policy: Policy, { method, path, fields }: TestRequest): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`, "latin1");
  const parser = new RequestParser();
  assert.equal(parser.execute(head, 0, head.length), Parse.Complete);
  const bare = path.replaceAll(/;[^/]*/g, "").replaceAll(/\/{2,}/g, "/");
  const paths = path.includes(";") ? [path, bare] : [path];
  const effects = paths.map((one) =>
    policy.decide({ method: method.toUpperCase(), path: one, fields: parser.fields }),
  );
  return effects.includes("deny") ? "deny" : "allow";
}

const word = fc.constantFrom("a", "b", "ab", "x;v=1", "", "a%20b", "\u00e9", "*");
const pattern = fc
  .array(fc.constantFrom("a", "b", "/", "*", "ab", "\u00e9"), { maxLength: 8 })
  .map((parts) => `/${parts.join("")}`);
const method = fc.constantFrom("GET", "HEAD", "POST", "get", "*", "OPTIONS");
const name = fc.constantFrom("x-a", "X-B", "cookie");
const value = fc.constantFrom("1", "2", '"1, 2"', '""', "a b", "\u0101", "k=v");
const line = fc
  .tuple(
    fc.constantFrom("allow", "deny"),
    method,
    fc.oneof(pattern, fc.constant("*")),
    fc.option(fc.tuple(name, value)),
  )
  .map(
    ([effect, verb, path, condition]) =>
      `${effect} ${verb} ${path}${condition === null ? "" : ` if header.${condition[0]} == ${condition[1]}`}`,
  );
const request: fc.Arbitrary<TestRequest> = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST", "get", "OPTIONS", "PURGE"),
  path: fc
    .array(word, { minLength: 1, maxLength: 4 })
    .map((words) => `/${words.join("/")}`.replaceAll(/\/{2,}/g, "/")),
  query: fc.constantFrom("", "?a", "?/b;c"),
  fields: fc.array(
    fc.tuple(name, fc.constantFrom("1", "2", "1, 2", "a b", "1 ,2", "k=v", "", "\u00a01")),
    { maxLength: 4 },
  ),
});

test("random policies decide the same: interpreted, and compiled in two hosts", () => {
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 8 }),
      fc.array(request, { minLength: REQUESTS, maxLength: REQUESTS }),
      (lines, requests) => {
        const text = lines.join("\n");
        const rules = readPolicyText(text).rules.map(({ rule }) => rule);
        const policy = new Policy(rules);
        const module = compilePolicy(rules);
        const guest = new HttpGuest(compileHttpModule(module), environment);
        const second = new SecondHost(Uint8Array.from(module), "");
        for (const one of requests) {
          const decision = decideInterpreted(policy, one);
          assert.equal(decideCompiled(guest, one), decision, JSON.stringify(one));
          assert.equal(decideBySecondHost(second, one), decision, JSON.stringify(one));
        }
      },
    ),
    { numRuns: POLICIES },
  );
});

test("10 000 rules are decided within the fuel of a call", () => {
  const lines = Array.from(
    { length: 10_000 },
    (_, index) => `deny GET /p${index}/* if header.x-a == ${index}`,
  );
  const read = readPolicyFile(Buffer.from([...lines, "deny GET /last"].slice(1).join("\n")), {});
  assert.ok(read.faults === undefined);
  const guest = new HttpGuest(compileHttpModule(compilePolicy(read.rules)), environment);
  const ask = (path: string, field: string) =>
    decideCompiled(guest, { method: "GET", path, query: "", fields: [["X-A", field]] });
  assert.equal(ask("/p9999/x", "9999"), "deny");
  assert.equal(ask("/p9999/x", "9998"), "allow");
  assert.equal(ask("/last", ""), "deny");
  assert.ok(guest.fuelUsed < 4_000_000, String(guest.fuelUsed));
});

test("values that do not fit end the guest instead of being ignored", () => {
  const guest = new HttpGuest(
    compileHttpModule(
      compilePolicy(readPolicyText("deny * * if header.x-a == b").rules.map(({ rule }) => rule)),
    ),
    environment,
  );
  const fields: [string, string][] = Array.from({ length: 10 }, () => ["X-A", "c".repeat(8_000)]);
  assert.throws(
    () => decideCompiled(guest, { method: "GET", path: "/", query: "", fields }),
    /trapped/,
  );
});

const faults: [name: string, text: string, expected: string[]][] = [
  [
    "unknown words",
    "permit GET /\nallow\ndeny GET a\n",
    [
      '1:1 expected "allow" or "deny" first',
      "2:6 expected a method or * after it",
      '3:10 expected a path pattern that starts with "/" or "*"',
    ],
  ],
  ["a wrong condition", "  deny GET /a if x = 1", ["1:15 expected: if header.<name> == <value>"]],
  ["NUL", "deny GET /a\0", ["1:12 the line contains a control character"]],
  [
    "a place that is not given",
    "deny GET /a if cluster == b",
    ["1:1 the condition on cluster requires --cluster"],
  ],
];
for (const [about, text, expected] of faults) {
  test(`faults: ${about}`, () => {
    const { faults: found = [] } = readPolicyFile(Buffer.from(text), {});
    assert.deepEqual(
      found.map((one) => `${one.line}:${one.column} ${one.message}`),
      expected,
    );
  });
}

test("a mark of the byte order, CRLF, comments and places are accepted", () => {
  const text = "\ufeff# rules\r\ndeny GET /a\r\n\r\ndeny GET /b if region == eu\r\nallow * *\r\n";
  const read = readPolicyFile(Buffer.from(text), { region: "us" });
  assert.deepEqual(read, {
    rules: [{ effect: "deny", methods: ["GET"], path: "/a" }, { effect: "allow" }],
  });
});

test("a file or a line that is too long is refused", () => {
  const large = readPolicyFile(Buffer.alloc(1_048_577, "#"), {});
  assert.match(large.faults?.[0]?.message ?? "", /limit is 1048576/);
  const long = readPolicyFile(Buffer.from(`deny GET /${"a".repeat(1_000_000)}`), {});
  assert.match(long.faults?.[0]?.message ?? "", /too long/);
});
