// Address resolution of targets.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Resolver } from "../../src/upstream/resolver.ts";

const resolvers: Resolver[] = [];
afterEach(() => {
  for (const resolver of resolvers.splice(0)) resolver.close();
});

function resolve(answers: (name: string) => string[] | Error): {
  resolver: Resolver;
  failures: string[];
  asked: string[];
} {
  const failures: string[] = [];
  const asked: string[] = [];
  const resolver = new Resolver({
    lookup: async (name) => {
      asked.push(name);
      const answer = answers(name);
      if (answer instanceof Error) throw answer;
      return answer.map((address) => ({ address }));
    },
    intervalMs: 10_000,
    timeoutMs: 50,
    onFailure: (name) => failures.push(name),
  });
  resolvers.push(resolver);
  return { resolver, failures, asked };
}

test("addresses and localhost need no lookup", () => {
  const { resolver, asked } = resolve(() => []);
  const seen: (readonly string[])[] = [];
  for (const name of ["127.0.0.1", "[::1]", "localhost", "LocalHost"]) {
    resolver.watch(name, (addresses) => seen.push(addresses));
  }
  assert.deepEqual(seen, [["127.0.0.1"], ["::1"], ["127.0.0.1", "::1"], ["127.0.0.1", "::1"]]);
  assert.deepEqual(asked, []);
});

test("a change of addresses is reported, a failure keeps the last good result", async () => {
  let answer: string[] | Error = ["192.0.2.1", "192.0.2.2"];
  const { resolver, failures } = resolve(() => answer);
  const seen: (readonly string[])[] = [];
  const { ready } = resolver.watch("up.example", (addresses) => seen.push(addresses));
  await ready;
  for (const next of [["192.0.2.2", "192.0.2.1"], new Error("SERVFAIL"), [], ["192.0.2.3"]]) {
    answer = next;
    resolver.refresh();
    await new Promise(setImmediate);
  }
  assert.deepEqual(seen, [["192.0.2.1", "192.0.2.2"], ["192.0.2.3"]]);
  assert.deepEqual(failures, ["up.example", "up.example"]);
  const late: (readonly string[])[] = [];
  resolver.watch("up.example", (addresses) => late.push(addresses));
  assert.deepEqual(late, [["192.0.2.3"]]);
});

test("a lookup times out, and unwatched names are not looked up", async () => {
  const failures: string[] = [];
  let asked = 0;
  const resolver = new Resolver({
    lookup: () => {
      asked++;
      return new Promise(() => undefined);
    },
    intervalMs: 10_000,
    timeoutMs: 20,
    onFailure: (name) => failures.push(name),
  });
  resolvers.push(resolver);
  const { ready, stop } = resolver.watch("up.example", () => undefined);
  await Promise.race([ready, new Promise((done) => setTimeout(done, 1_000))]);
  assert.deepEqual(failures, ["up.example"]);
  stop();
  resolver.refresh();
  assert.equal(asked, 1);
});
