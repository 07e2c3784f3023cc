// Direct delivery to mail exchangers, with a local DNS server; MTA-STS policies.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { systemClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import { allowsExchanger, parseStsPolicy, StsPolicies } from "../../../src/relay/direct/mta-sts.ts";
import { startDnsServer, type Zone } from "../../dns-server.ts";
import { startSink, type SinkOptions } from "../../sink.ts";
import { startStage } from "../../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function start(
  zone: Zone,
  options: SinkOptions = {},
  settings: Record<string, unknown> = {},
) {
  const sink = await startSink(options);
  const dns = await startDnsServer(zone);
  const stage = await startStage({
    "smtp.mode": "direct",
    "smtp.direct_port": sink.port,
    dns_servers: [dns.address],
    allow_private_targets: true,
    from_domain: "shop.example",
    ...settings,
  });
  OPEN.push(sink, dns, { close: () => stage.close(500) });
  const send = (to: string) =>
    stage.call("POST", "/api/v1/send", { to, subject: "Hello", text: "Hello" });
  return { sink, dns, stage, send };
}

describe("direct delivery", () => {
  test("mail goes to the exchanger with the lowest preference that answers", async () => {
    const { sink, send } = await start({
      "a.example": {
        MX: ["20 mx2.a.example", "10 mx1.a.example"],
      },
      // Nothing listens there: it is tried first, and refused.
      "mx1.a.example": { A: ["127.0.0.2"] },
      "mx2.a.example": { A: ["127.0.0.1"] },
    });
    const sent = await send("ada@a.example");
    assert.equal(sent.status, 200, sent.text);
    assert.equal(sink.accepted[0]!.recipient, "ada@a.example");
  });

  test("a domain without MX is its own exchanger", async () => {
    const { sink, send } = await start({ "b.example": { A: ["127.0.0.1"] } });
    assert.equal((await send("ada@b.example")).status, 200);
    assert.equal(sink.accepted.length, 1);
  });

  test("domains that do not exist, or accept no mail, are rejected and suppressed", async () => {
    const { stage, send } = await start({ "null.example": { MX: ["0 ."] } });
    const refused = await send("ada@null.example");
    assert.equal(refused.status, 422);
    assert.equal(refused.body.enhanced_code, "5.1.10");
    const missing = await send("ada@missing.example");
    assert.equal(missing.status, 422);
    assert.equal(missing.body.enhanced_code, "5.1.2");
    const { body } = await stage.call("GET", "/api/v1/suppression");
    assert.equal(body.addresses.length, 2);
  });

  test("a failure of DNS defers the mail, and it is sent when DNS answers", async () => {
    const { sink, dns, stage, send } = await start({ "c.example": { isFailing: true } });
    assert.equal((await send("ada@c.example")).status, 202);
    dns.zone["c.example"] = { A: ["127.0.0.1"] };
    stage.advance(10 * 60_000);
    await waitFor(async () => {
      await stage.refill();
      return sink.accepted.length === 1;
    });
  });

  test("exchangers on private addresses are refused", async () => {
    const { sink, send } = await start(
      { "d.example": { MX: ["10 mx.d.example"] }, "mx.d.example": { A: ["127.0.0.1"] } },
      {},
      { allow_private_targets: false },
    );
    const refused = await send("ada@d.example");
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /private addresses/);
    assert.equal(sink.connections, 0);
  });

  test("a slow domain does not delay the others", async () => {
    const { sink, send } = await start(
      { "slow.example": { A: ["127.0.0.1"] }, "fast.example": { A: ["127.0.0.1"] } },
      {
        reply: (step, to) => (step === "RCPT" && to.endsWith("slow.example") ? "hang" : undefined),
      },
      { "smtp.destination_connections_max": 2, send_wait_ms: 1_000 },
    );
    const slow = await Promise.all(
      Array.from({ length: 10 }, (_, index) => send(`user${index}@slow.example`)),
    );
    assert.ok(slow.every(({ status }) => status === 202));
    assert.equal((await send("ada@fast.example")).status, 200);
    assert.equal(sink.connections, 3, "two for the slow domain");
  });
});

describe("MTA-STS", () => {
  const text =
    "version: STSv1\r\nmode: enforce\r\nmx: mx.a.example\r\nmx: *.b.example\r\nmax_age: 86400\r\n";

  test("policies are parsed, and invalid ones ignored", () => {
    const policy = parseStsPolicy(text)!;
    assert.deepEqual(policy, {
      mode: "enforce",
      mx: ["mx.a.example", "*.b.example"],
      maxAgeSeconds: 86_400,
    });
    assert.ok(allowsExchanger(policy, "mx.a.example"));
    assert.ok(allowsExchanger(policy, "mx1.b.example"));
    assert.ok(!allowsExchanger(policy, "x.mx1.b.example"), "a star is one label");
    assert.ok(!allowsExchanger(policy, "b.example"));
    for (const bad of [
      text.replace("STSv1", "STSv2"),
      text.replace("enforce", "perhaps"),
      text.replace("max_age: 86400", ""),
      "version: STSv1\nmode: enforce\nmax_age: 1\n",
    ]) {
      assert.equal(parseStsPolicy(bad), undefined, bad);
    }
  });

  test("a policy is fetched once per id, and kept while it cannot be read", async () => {
    let fetched = 0;
    let record = "v=STSv1; id=1";
    let isDown = false;
    let aheadMs = 0;
    const policies = new StsPolicies({
      readTexts: async () => {
        if (isDown) throw new Error("DNS failed");
        return [record, "other"];
      },
      fetch: async (url) => {
        fetched += 1;
        assert.equal(String(url), "https://mta-sts.a.example/.well-known/mta-sts.txt");
        return new Response(text, { headers: { "content-type": "text/plain" } });
      },
      clock: {
        now: () => systemClock.now() + aheadMs,
        monotonicMs: () => systemClock.monotonicMs() + aheadMs,
      },
    });
    assert.equal((await policies.find("a.example"))?.mode, "enforce");
    aheadMs += 10 * 60_000;
    await policies.find("a.example");
    assert.equal(fetched, 1);
    record = "v=STSv1; id=2";
    aheadMs += 10 * 60_000;
    await policies.find("a.example");
    assert.equal(fetched, 2);
    isDown = true;
    aheadMs += 10 * 60_000;
    assert.equal((await policies.find("a.example"))?.mode, "enforce");
    aheadMs += 2 * 86_400_000;
    assert.equal(await policies.find("a.example"), undefined, "expired");
  });
});
