// ARC chains of received mail (RFC 8617): their results are reported and change no decision.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, test } from "node:test";
import { authenticate } from "mailauth";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer, type DnsServer } from "../dns-server.ts";
import { startHookServer } from "../receiver.ts";
import { openSmtp } from "../smtp-client.ts";
import { startStage } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];
const MAIL =
  "From: ada@sender.example\r\nTo: support@shop.example\r\nSubject: Hi\r\nMessage-ID: <1@sender.example>\r\n\r\nHello\r\n";

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

/** Seals a mail as the list server of list.example does. */
async function seal(mail: string, dns: DnsServer): Promise<string> {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const p = publicKey.export({ type: "spki", format: "der" }).toString("base64");
  dns.zone["s1._domainkey.list.example"] = { TXT: [`v=DKIM1; k=rsa; p=${p}`] };
  const { headers } = await authenticate(mail, {
    ip: "192.0.2.1",
    helo: "list.example",
    sender: "ada@sender.example",
    mta: "list.example",
    resolver: async () => Promise.reject(Object.assign(new Error("none"), { code: "ENOTFOUND" })),
    disableBimi: true,
    seal: {
      signingDomain: "list.example",
      selector: "s1",
      privateKey: privateKey.export({ type: "pkcs8", format: "pem" }),
    },
  });
  return headers + mail;
}

test("chains that are valid, broken or absent are told apart, and do not override DMARC", async () => {
  const dns = await startDnsServer({
    "_dmarc.strict.example": { TXT: ["v=DMARC1; p=reject"] },
    "strict.example": { TXT: ["v=spf1 -all"] },
  });
  const hooks = await startHookServer();
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
  });
  OPEN.push(dns, hooks, stage);
  await stage.call("POST", "/api/v1/inbound/rules", {
    name: "all",
    match: { to_pattern: "*@shop.example" },
    forward_to: hooks.url,
  });
  const send = async (content: string): Promise<string> => {
    const client = await openSmtp(stage.smtpPort);
    const reply = await client.mail("list@list.example", ["support@shop.example"], content);
    client.close();
    return reply;
  };
  const sealed = await seal(MAIL, dns);
  for (const content of [sealed, sealed.replace("Hello", "Hullo"), MAIL]) {
    assert.match(await send(content), /^250 /);
  }
  await waitFor(() => hooks.requests.length === 3);
  const results = hooks.requests.map(({ body }) => `${body.arc} ${body.arc_domain}`);
  assert.ok(results.includes("pass list.example"), results.join());
  assert.equal(results.filter((one) => one.startsWith("fail")).length, 1, results.join());
  assert.ok(results.includes("none "), results.join());
  const { body } = await stage.call("GET", "/api/v1/inbound/messages");
  const stored = body.messages.filter(({ arc }: { arc: string }) => arc === "pass");
  assert.equal(stored[0].arc_domain, "list.example");
  const raw = await stage.call("GET", `/api/v1/inbound/messages/${stored[0].id}/raw`);
  assert.match(raw.text, /^Authentication-Results: notify\.test;[\s\S]*?arc=pass/m);

  const foreign = await seal(MAIL.replace("sender.example", "strict.example"), dns);
  assert.match(await send(foreign), /^550 /);
});
