// Every function and rule of the http-wasm handler ABI, by guests in two languages: at the gateway on each runtime, and at a
// second host, so that it is the page that guests and cases agree with. The ledger is the table of rules and outcomes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { SecondHost } from "@platform/testing/second-host";
import { RUNTIMES, skipRuntime } from "../../stage/gateway-state.ts";
import { describeFailure, settleLedger } from "../ledger.ts";
import {
  CONFIG,
  type Case,
  type Passed,
  type Scene,
  UPSTREAM,
  completeScene,
  valuesOf,
} from "./case.ts";
import { SECTIONS, cases } from "./cases.ts";
import { GatewayStage } from "./gateway-stage.ts";

const GUESTS = { assemblyscript: "script-as", c: "script-c" } as const;
type Language = keyof typeof GUESTS;
const languages = Object.keys(GUESTS) as Language[];

const load = (language: Language): Buffer<ArrayBuffer> =>
  readFileSync(new URL(`guests/${GUESTS[language]}.wasm`, import.meta.url));
const outcomes: Record<string, Record<string, string>> = {};

function check({ expected }: Case, passed: Passed): void {
  const { out, status, body, fields, upstream, traps = false, lines } = expected;
  assert.equal(passed.isTrapped, traps, `trapped: ${passed.isTrapped}, ${passed.out}`);
  if (typeof out === "string") assert.equal(passed.out, out);
  else if (out instanceof RegExp) assert.match(passed.out, out);
  else if (out !== undefined) assert.equal(passed.out, out(passed));
  if (status !== undefined) assert.equal(passed.status, status);
  if (body !== undefined) assert.equal(passed.body, body);
  if (lines !== undefined) assert.deepEqual(passed.lines, lines);
  for (const [name, values] of Object.entries(fields ?? {}))
    assert.deepEqual(valuesOf(passed.fields, name), values);
  if (upstream === undefined) return;
  if (upstream === null) {
    assert.equal(passed.upstream, undefined);
    return;
  }
  const seen = passed.upstream;
  assert.ok(seen !== undefined, "the upstream was not asked");
  if (upstream.method !== undefined) assert.equal(seen.method, upstream.method);
  if (upstream.target !== undefined) assert.equal(seen.target, upstream.target);
  if (upstream.body !== undefined) assert.equal(seen.body, upstream.body);
  for (const [name, values] of Object.entries(upstream.fields ?? {}))
    assert.deepEqual(valuesOf(seen.fields, name), values);
}

/** Runs all cases by `pass`, and notes their outcomes in the column `host`. */
async function runCases(
  context: TestContext,
  host: string,
  list: readonly Case[],
  pass: (scene: Scene) => Passed | Promise<Passed>,
): Promise<void> {
  for (const one of list) {
    await context.test(`${one.section}: ${one.rule}`, async (t) => {
      const results = (outcomes[`${one.section}: ${one.rule}`] ??= {});
      try {
        check(one, await pass(completeScene(one.scene)));
        results[host] = "ok";
      } catch (error) {
        results[host] = describeFailure(error);
        t.diagnostic((error as Error).stack ?? "");
      }
    });
  }
}

test("each heading of the page that has a rule has a case", () => {
  const covered = new Set(cases.map(({ section }) => section));
  assert.deepEqual(
    SECTIONS.filter((section) => !covered.has(section)),
    [],
  );
  const names = cases.map(({ section, rule }) => `${section}: ${rule}`);
  assert.equal(new Set(names).size, names.length);
});

for (const language of languages) {
  test(`the second host, ${language}`, async (context) => {
    const host = new SecondHost(load(language), CONFIG);
    const common = cases.filter(({ isOwn }) => isOwn !== true);
    await runCases(context, `second host, ${language}`, common, (scene) => passBy(host, scene));
  });
}

const runtimes = RUNTIMES.filter((runtime) => skipRuntime(runtime) === false);
for (const runtime of runtimes) {
  test(`the gateway on ${runtime}`, async (context) => {
    await using stage = await GatewayStage.start(runtime, CONFIG, UPSTREAM);
    for (const language of languages) {
      const host = `${runtime}, ${language}`;
      await stage.register(language, load(language));
      await runCases(context, host, cases, (scene) => stage.pass(language, scene));
    }
  });
}

test("the outcomes are those of the ledger", () => {
  settleLedger(new URL("ledger.json", import.meta.url), outcomes, runtimes.length < 2);
});

/** The part of a server around the second host. */
function passBy(host: SecondHost, scene: Scene): Passed {
  const client = "192.0.2.1:4711";
  host.lines.length = 0;
  const exchange = {
    method: scene.method,
    uri: scene.target,
    version: "HTTP/1.1",
    source: client,
    status: 200,
    request: {
      fields: [...scene.fields, ["X-Script", scene.script], ["X-Then", scene.late]].filter(
        ([, value], index) => value !== "" || index < scene.fields.length,
      ) as [string, string][],
      body: Buffer.from(scene.body) as Uint8Array,
    },
    response: { fields: [] as (readonly [string, string])[], body: Buffer.alloc(0) as Uint8Array },
  };
  let upstream: Passed["upstream"];
  let isTrapped = false;
  try {
    const next = host.handleRequest(exchange);
    if (next !== undefined) {
      if (!scene.isAlone)
        upstream = {
          method: exchange.method,
          target: exchange.uri || "/",
          fields: lower(exchange.request.fields),
          body: Buffer.from(exchange.request.body).toString("latin1"),
        };
      exchange.status = scene.isAlone ? 502 : UPSTREAM.status;
      if (!scene.isAlone) exchange.response.fields.push(...UPSTREAM.fields);
      exchange.response.body = Buffer.from(scene.isAlone ? "" : UPSTREAM.body);
      host.handleResponse(next, scene.isAlone);
    }
  } catch {
    isTrapped = true;
  }
  const fields = lower(exchange.response.fields);
  return {
    status: exchange.status,
    fields,
    body: Buffer.from(exchange.response.body).toString("latin1"),
    out: valuesOf(fields, "x-out")[0] ?? "",
    ...(upstream === undefined ? {} : { upstream }),
    isTrapped,
    lines: [...host.lines],
    client,
  };
}

function lower(fields: readonly (readonly [string, string])[]): [string, string][] {
  return fields.map(([name, value]) => [name.toLowerCase(), value]);
}
