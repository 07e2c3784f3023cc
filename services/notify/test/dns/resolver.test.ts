// DNS lookups: a cache with bounds, shared queries, errors that are answers.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { limitLookups } from "../../src/dns/budget.ts";
import { DnsResolver, isMissing, readDnsCode } from "../../src/dns/resolver.ts";
import { startDnsServer, type DnsServer, type Zone } from "../dns-server.ts";

const OPEN: DnsServer[] = [];
after(async () => {
  for (const one of OPEN) await one.close();
});

async function start(zone: Zone) {
  const server = await startDnsServer(zone);
  OPEN.push(server);
  const clock = createManualClock();
  return { server, clock, dns: new DnsResolver({ servers: [server.address], clock }) };
}

test("records are asked for once a minute, and concurrent lookups share a query", async () => {
  const { server, clock, dns } = await start({
    "a.example": { A: ["192.0.2.1"], TXT: ["x".repeat(300)], MX: ["10 mx.a.example", "0 ."] },
  });
  const answers = await Promise.all([dns.readTexts("a.example"), dns.readTexts("A.example")]);
  assert.deepEqual(answers, [["x".repeat(300)], ["x".repeat(300)]]);
  assert.deepEqual(server.queries, ["TXT a.example"]);
  assert.deepEqual(await dns.readAddresses("a.example"), ["192.0.2.1"]);
  assert.deepEqual(await dns.resolveHost("a.example"), [{ address: "192.0.2.1", family: 4 }]);
  assert.deepEqual(await dns.readMx("a.example"), [
    { exchange: "mx.a.example", priority: 10, type: "MX" },
    { exchange: "", priority: 0, type: "MX" },
  ]);
  const count = server.queries.length;
  server.zone["a.example"] = { TXT: ["y"] };
  clock.advance(59_000);
  assert.deepEqual(await dns.readTexts("a.example"), ["x".repeat(300)]);
  assert.equal(server.queries.length, count);
  clock.advance(2_000);
  assert.deepEqual(await dns.readTexts("a.example"), ["y"]);
});

test("lookups that ignore the cache renew it", async () => {
  const { server, dns } = await start({ "a.example": { TXT: ["x"] } });
  await dns.readTexts("a.example");
  server.zone["a.example"] = { TXT: ["y"] };
  assert.deepEqual(await dns.lookupNow("a.example", "TXT"), [["y"]]);
  assert.deepEqual(await dns.readTexts("a.example"), ["y"]);
});

test("missing records are an answer for 30 s, failures for 5 s", async () => {
  const { server, clock, dns } = await start({ "fails.example": { isFailing: true } });
  assert.deepEqual(await dns.readTexts("missing.example"), []);
  await assert.rejects(dns.lookup("missing.example", "TXT"), (error) => isMissing(error));
  const fail = () =>
    assert.rejects(dns.readMx("fails.example"), (error) => readDnsCode(error) === "ESERVFAIL");
  await fail();
  const count = server.queries.length;
  clock.advance(4_000);
  await fail();
  assert.equal(server.queries.length, count);
  server.zone["missing.example"] = { TXT: ["x"] };
  server.zone["fails.example"] = { MX: ["1 mx.example"] };
  clock.advance(2_000);
  assert.equal((await dns.readMx("fails.example")).length, 1);
  assert.deepEqual(await dns.readTexts("missing.example"), []);
  clock.advance(25_000);
  assert.deepEqual(await dns.readTexts("missing.example"), ["x"]);
});

test("at most 4 096 answers are kept, and no large ones", async () => {
  const { server, dns } = await start({
    "large.example": { TXT: Array(20).fill("x".repeat(250)) },
  });
  await dns.readTexts("large.example");
  await dns.readTexts("large.example");
  assert.equal(server.queries.length, 2);
  for (let index = 0; index < 4_096; index += 64) {
    const names = Array.from({ length: 64 }, (_, one) => `n${index + one}.example`);
    await Promise.all(names.map((name) => dns.readTexts(name)));
  }
  server.queries.length = 0;
  await dns.readTexts("n4095.example");
  assert.deepEqual(server.queries, []);
  await dns.readTexts("another.example");
  await dns.readTexts("n0.example");
  assert.deepEqual(server.queries, ["TXT another.example", "TXT n0.example"]);
});

test("lookups of a message end with its budget", async () => {
  const { server, dns } = await start({});
  server.isSilent = true;
  const asked: string[] = [];
  let hasAnswer = false;
  const limited = limitLookups((name, type) => {
    asked.push(name);
    return dns.lookup(name, type).finally(() => (hasAnswer = true));
  }, 100);
  for (let count = 0; count < 3; count += 1) {
    await assert.rejects(
      limited(`n${count}.example`, "TXT"),
      (error) => readDnsCode(error) === "ETIMEOUT",
    );
  }
  assert.equal(hasAnswer, false, "the resolver's own timeout is longer");
  assert.deepEqual(asked, ["n0.example"], "nothing is asked when the budget is used up");
});
