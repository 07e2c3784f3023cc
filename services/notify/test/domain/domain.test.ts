// Sending domains: DNS records, DKIM signatures that others verify, rotation, alignment.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { signMessage } from "../../src/domain/dkim-signature.ts";
import { findPythonSkip, publish, type DnsRecordAnswer } from "../dkim.ts";
import { startDnsServer, type DnsServer } from "../dns-server.ts";
import { startSink, type Sink } from "../sink.ts";
import { startStage, type Stage } from "../stage.ts";

const run = promisify(execFile);
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function start(
  settings: Record<string, unknown> = {},
): Promise<{ stage: Stage; dns: DnsServer; sink: Sink }> {
  const dns = await startDnsServer({});
  const sink = await startSink();
  const stage = await startStage({
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    dns_servers: [dns.address],
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    ...settings,
  });
  OPEN.push(dns, sink, stage);
  return { stage, dns, sink };
}

const statuses = (records: readonly DnsRecordAnswer[]): Record<string, string> =>
  Object.fromEntries(records.map(({ purpose, status }) => [purpose, status]));

// The verifier of Debian's python3-dkim, with the records of the test's DNS server.
function verifyWithPython(mail: string, dns: DnsServer): string {
  const program = `
import dkim, json, sys
zone = json.loads(sys.argv[1])
def txt(name, timeout=5):
    name = name.decode() if isinstance(name, bytes) else name
    found = zone.get(name.rstrip('.').lower(), {}).get('TXT')
    return found[0].encode() if found else None
print(dkim.verify(sys.stdin.buffer.read(), dnsfunc=txt))
`;
  return execFileSync("/usr/bin/python3", ["-c", program, JSON.stringify(dns.zone)], {
    input: Buffer.from(mail, "latin1"),
  })
    .toString()
    .trim();
}

// The verifier of Debian's python3-spf, which asks the test's DNS server.
async function checkSpf(dns: DnsServer, address: string, sender: string): Promise<string> {
  const program = `
import sys, dns.resolver, spf
host, port = sys.argv[1].rsplit(':', 1)
dns.resolver.default_resolver = dns.resolver.Resolver(configure=False)
dns.resolver.default_resolver.nameservers = [host]
dns.resolver.default_resolver.port = int(port)
print(spf.check2(i=sys.argv[2], s=sys.argv[3], h='mail.shop.example')[0])
`;
  const args = ["-W", "ignore", "-c", program, dns.address, address, sender];
  return (await run("/usr/bin/python3", args)).stdout.trim();
}

test("a domain is added, published, verified; then its mail is signed", async () => {
  const { stage, dns, sink } = await start();
  const added = await stage.call("POST", "/api/v1/domains", { domain: "Shop.Example" });
  assert.equal(added.status, 201, added.text);
  assert.equal(added.body.domain, "shop.example");
  assert.equal(added.body.verified, false);
  assert.deepEqual(statuses(added.body.records), {
    dkim: "missing",
    spf: "missing",
    dmarc: "missing",
    mx: "missing",
  });
  assert.equal(added.text.includes("PRIVATE"), false);
  const mail = { from: "a@shop.example", to: "b@x.example", subject: "Hi", text: "Hi" };
  await stage.call("POST", "/api/v1/send", mail);
  assert.doesNotMatch(sink.accepted[0]!.data, /DKIM-Signature/);

  publish(dns, added.body.records);
  const checked = await stage.call("GET", "/api/v1/domains");
  assert.equal(checked.body.domains[0].verified, true, checked.text);
  assert.equal(checked.body.domains[0].keys[0].state, "active");
  await stage.call("POST", "/api/v1/send", mail);
  const { results } = await dkimVerify(Buffer.from(sink.accepted[1]!.data, "latin1"), {
    resolver: async (name) => [dns.zone[name]!.TXT!],
    strict: true,
  });
  assert.equal(results[0]!.status.result, "pass");
  assert.equal(results[0]!.signingDomain, "shop.example");
});

test(
  "python3-dkim verifies mail with attachments and both unsubscribe fields",
  { skip: findPythonSkip() },
  async () => {
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const p = publicKey.export({ type: "spki", format: "der" }).toString("base64");
    const dns = await startDnsServer({
      "s1._domainkey.shop.example": { TXT: [`v=DKIM1; k=rsa; p=${p}`] },
    });
    OPEN.push(dns);
    const key = { domain: "shop.example", selector: "s1", key: privateKey };
    const head =
      "From: a@shop.example\r\nTo: b@x.example,\r\n\tc@x.example\r\nSubject:  two   spaces \r\nList-Unsubscribe: <https://x.example/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nX-Other: y\r\n";
    const bodies = [
      "",
      "\r\n\r\n",
      "Hello  \t World \r\n\r\nx\r\n\r\n\r\n",
      "no end",
      " \r\n",
      "YWJj\r\nYWJj\r\n",
    ];
    for (const body of bodies) {
      const content = Buffer.from(`${head}\r\n${body}`, "latin1");
      const field = await signMessage(content, key, Date.now());
      assert.match(field, /list-unsubscribe:[\s\S]*list-unsubscribe-post/);
      assert.ok(field.split("\r\n").every((line) => line.length <= 100));
      const mail = field + content.toString("latin1");
      assert.equal(verifyWithPython(mail, dns), "True", JSON.stringify(body));
      if (body !== bodies[2]) continue;
      // A second From, another subject and another body break the signature.
      const forged = [`From: ceo@bank.example\r\n`, "Subject: other\r\n"].map(
        (line) => field + line + content.toString("latin1"),
      );
      for (const one of [...forged, `${mail}more`])
        assert.equal(verifyWithPython(one, dns), "False");
    }
  },
);

test(
  "python3-spf lets the mail host of the published records send, and no other address",
  { skip: findPythonSkip("spf") },
  async () => {
    const { stage, dns, sink } = await start({ from_domain: "shop.example" });
    const { body } = await stage.call("GET", "/api/v1/domains/shop.example");
    publish(dns, body.records);
    const { MX = [] } = dns.zone["shop.example"]!;
    dns.zone[MX[0]!.split(" ")[1]!] = { A: ["192.0.2.10"] };
    await stage.call("POST", "/api/v1/send", { to: "b@x.example", subject: "Hi", text: "Hi" });
    const { sender } = sink.accepted[0]!;
    assert.match(sender, /@shop\.example$/);
    assert.equal(await checkSpf(dns, "192.0.2.10", sender), "pass");
    assert.equal(await checkSpf(dns, "192.0.2.99", sender), "softfail");
    assert.ok(dns.queries.includes("TXT shop.example"));
  },
);

describe("rotation", () => {
  test("the next key signs once it is published; the previous one stays for seven days", async () => {
    const { stage, dns, sink } = await start({ from_domain: "shop.example" });
    const first = await stage.call("GET", "/api/v1/domains/shop.example");
    publish(dns, first.body.records);
    await stage.call("GET", "/api/v1/domains/shop.example");
    stage.advance(1_000);
    const second = await stage.call("POST", "/api/v1/domains/shop.example/keys");
    assert.equal(second.status, 201, second.text);
    assert.deepEqual(
      second.body.keys.map(({ state }: { state: string }) => state),
      ["active", "pending"],
    );
    assert.equal((await stage.call("POST", "/api/v1/domains/shop.example/keys")).status, 409);
    const [oldKey, newKey] = second.body.keys as { selector: string }[];
    const mail = { to: "b@x.example", subject: "Hi", text: "Hi" };
    await stage.call("POST", "/api/v1/send", mail);
    assert.ok(sink.accepted[0]!.data.includes(` s=${oldKey!.selector};`));
    publish(dns, second.body.records);
    const third = await stage.call("GET", "/api/v1/domains/shop.example");
    assert.deepEqual(
      third.body.keys.map(({ state }: { state: string }) => state),
      ["retired", "active"],
    );
    await stage.call("POST", "/api/v1/send", mail);
    assert.ok(sink.accepted[1]!.data.includes(` s=${newKey!.selector};`));
  });

  test("a key can be activated without its record", async () => {
    const { stage, sink } = await start({ from_domain: "shop.example" });
    const { body } = await stage.call("GET", "/api/v1/domains/shop.example");
    const path = `/api/v1/domains/shop.example/keys/${body.keys[0].selector}/activate`;
    assert.equal((await stage.call("POST", path)).status, 200);
    await stage.call("POST", "/api/v1/send", { to: "b@x.example", subject: "Hi", text: "Hi" });
    assert.match(sink.accepted[0]!.data, /^DKIM-Signature: /);
    assert.equal((await stage.call("POST", path)).status, 404);
  });
});

test("wrong, doubled and unreachable records are told apart", async () => {
  const { stage, dns } = await start({ from_domain: "shop.example" });
  const { body } = await stage.call("GET", "/api/v1/domains/shop.example");
  publish(dns, body.records);
  const dkim = body.records.find(({ purpose }: DnsRecordAnswer) => purpose === "dkim");
  dns.zone[dkim.name] = { TXT: ["v=DKIM1; p=AAAA"] };
  dns.zone["shop.example"] = {
    TXT: ["v=spf1 -all", "v=spf1 mx -all", "other"],
    MX: ["10 x.example"],
  };
  const wrong = await stage.call("GET", "/api/v1/domains/shop.example");
  assert.deepEqual(statuses(wrong.body.records), {
    dkim: "wrong",
    spf: "wrong",
    dmarc: "ok",
    mx: "wrong",
  });
  assert.deepEqual(wrong.body.records[0].found, ["v=DKIM1; p=AAAA"]);
  dns.isSilent = true;
  const silent = await stage.call("GET", "/api/v1/domains/shop.example");
  assert.deepEqual(new Set(Object.values(statuses(silent.body.records))), new Set(["unknown"]));
});

describe("alignment", () => {
  const mail = { from: "a@shop.example", to: "b@x.example", subject: "Hi", text: "Hi" };

  test("enforce refuses domains without a key, warn logs them once", async () => {
    const strict = await start({ dmarc_alignment: "enforce" });
    const refused = await strict.stage.call("POST", "/api/v1/send", mail);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /^from: the domain shop\.example has no active DKIM key/);
    const { stage } = await start();
    await stage.call("POST", "/api/v1/send", mail);
    await stage.call("POST", "/api/v1/send", mail);
    const warnings = stage.log.filter((line) => line.includes("without an active DKIM key"));
    assert.equal(warnings.length, 1);
  });
});

test("domains of the configuration cannot be deleted, others can, and invalid ones are refused", async () => {
  const { stage } = await start({ from_domain: "shop.example" });
  assert.equal((await stage.call("DELETE", "/api/v1/domains/shop.example")).status, 409);
  await stage.call("POST", "/api/v1/domains", { domain: "two.example" });
  assert.equal(
    (await stage.call("POST", "/api/v1/domains", { domain: "two.example" })).status,
    409,
  );
  assert.equal((await stage.call("DELETE", "/api/v1/domains/two.example")).status, 204);
  assert.equal((await stage.call("GET", "/api/v1/domains/two.example")).status, 404);
  for (const domain of ["127.0.0.1", "a b", "ехаmple.com"]) {
    assert.equal((await stage.call("POST", "/api/v1/domains", { domain })).status, 400, domain);
  }
});
