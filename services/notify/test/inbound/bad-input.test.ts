// Bad input on the inbound port: smuggling, injected commands, limits, hostile MIME.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { makeCertificate } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { LineEndingCheck } from "../../src/inbound/line-endings.ts";
import { matchesPattern } from "../../src/inbound/pattern.ts";
import { startDnsServer } from "../dns-server.ts";
import { connectSmtp, openSmtp } from "../smtp-client.ts";
import { startStage, type Stage } from "../stage.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "notify-inbound-"));
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
  rmSync(FOLDER, { recursive: true, force: true });
});

async function start(settings: Record<string, unknown> = {}): Promise<Stage> {
  const dns = await startDnsServer({});
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    dns_servers: [dns.address],
    ...settings,
  });
  OPEN.push(dns, stage);
  return stage;
}

const TO = "postmaster@shop.example";
const HEAD = "From: ada@sender.example\r\nSubject: x\r\n";

async function countStored(stage: Stage): Promise<number> {
  return (await stage.call("GET", "/api/v1/inbound/messages")).body.messages.length;
}

describe("SMTP smuggling", () => {
  const ATTACK = "MAIL FROM:<ceo@bank.example>\r\nRCPT TO:<postmaster@shop.example>\r\nDATA\r\n";
  for (const end of ["\n.\n", "\n.\r\n", "\r.\r", "\r\n.\r", "\r.\r\n", "\r\n.\n", "\r\r\n.\n"]) {
    test(`${JSON.stringify(end)} does not end the content, and the mail is refused`, async () => {
      const stage = await start();
      const client = await openSmtp(stage.smtpPort);
      const content = `${HEAD}\r\nfirst${end}${ATTACK}${HEAD}\r\nsecond`;
      const reply = await client.mail("a@sender.example", [TO], content);
      assert.match(reply, /^550 5\.6\.11 /);
      assert.match(await client.command("NOOP"), /^250 /);
      assert.equal(await countStored(stage), 0);
      client.close();
    });
  }

  test("bare line ends are found wherever the chunks end", () => {
    const cases: [text: string, hasBare: boolean][] = [
      ["a\r\nb\r\n", false],
      ["\r\n\r\n", false],
      ["", false],
      ["a\nb\r\n", true],
      ["a\rb\r\n", true],
      ["a\r\r\n", true],
      ["\n", true],
      ["a\r", true],
    ];
    for (const [text, expected] of cases) {
      for (let cut = 0; cut <= text.length; cut += 1) {
        const check = new LineEndingCheck();
        check.add(Buffer.from(text.slice(0, cut)));
        check.add(Buffer.from(text.slice(cut)));
        assert.equal(check.hasBare, expected, JSON.stringify([text, cut]));
      }
    }
  });
});

describe("STARTTLS", () => {
  const { key, cert } = makeCertificate(FOLDER, "notify.test");
  const settings = { inbound_tls_cert: cert, inbound_tls_key: key };

  test("mail arrives over TLS, and the trace says so", async () => {
    const stage = await start(settings);
    const client = await connectSmtp(stage.smtpPort);
    await client.reply();
    assert.match(await client.command("EHLO client.test"), /STARTTLS/);
    assert.match(await client.command("STARTTLS"), /^220 /);
    await client.startTls();
    assert.doesNotMatch(await client.command("EHLO client.test"), /STARTTLS/);
    const reply = await client.mail("a@sender.example", [TO], `${HEAD}\r\nx`);
    assert.match(reply, /^250 /);
    const id = reply.split(" ").at(-1);
    const { text } = await stage.call("GET", `/api/v1/inbound/messages/${id}/raw`);
    assert.match(text, / by notify\.test with ESMTPS id /);
    client.close();
  });

  test("commands that were sent before the handshake are discarded", async () => {
    const stage = await start(settings);
    const client = await connectSmtp(stage.smtpPort);
    await client.reply();
    await client.command("EHLO client.test");
    client.write(
      "STARTTLS\r\nMAIL FROM:<evil@sender.example>\r\nRCPT TO:<postmaster@shop.example>\r\n",
    );
    assert.match(await client.reply(), /^220 /);
    await client.startTls();
    // The injected MAIL would make this a nested one, and its state must not survive.
    await client.command("EHLO client.test");
    assert.match(await client.command(`RCPT TO:<${TO}>`), /^503 /);
    assert.match(await client.command("MAIL FROM:<a@sender.example>"), /^250 /);
    client.close();
  });

  test("without a certificate it is not offered", async () => {
    const stage = await start();
    const client = await connectSmtp(stage.smtpPort);
    await client.reply();
    assert.doesNotMatch(await client.command("EHLO client.test"), /STARTTLS|AUTH/);
    client.close();
  });
});

test("an awaited certificate: it is offered once the file is there", async () => {
  const { key, cert } = makeCertificate(FOLDER, "later.test");
  const path = join(FOLDER, "later.pem");
  const stage = await start({
    inbound_tls_cert: path,
    inbound_tls_key: path,
    inbound_tls_awaited: true,
  });
  const early = await connectSmtp(stage.smtpPort);
  await early.reply();
  assert.doesNotMatch(await early.command("EHLO client.test"), /STARTTLS/);
  early.close();
  writeFileSync(path, `${readFileSync(cert, "utf8")}${readFileSync(key, "utf8")}`);
  await waitFor(async () => {
    const client = await openSmtp(stage.smtpPort);
    const offer = await client.command("EHLO client.test");
    client.close();
    return offer.includes("STARTTLS");
  });
  const client = await openSmtp(stage.smtpPort);
  assert.match(await client.command("STARTTLS"), /^220 /);
  await client.startTls();
  assert.match(await client.command("EHLO client.test"), /^250/);
  client.close();
});

describe("limits", () => {
  test("a message over the size gets 552, by SIZE and by its content", async () => {
    const stage = await start({ inbound_bytes_max: 10_000 });
    const client = await openSmtp(stage.smtpPort);
    assert.match(await client.command("MAIL FROM:<a@b.example> SIZE=10001"), /^552 /);
    const reply = await client.mail("a@b.example", [TO], `${HEAD}\r\n${"x".repeat(10_000)}`);
    assert.match(reply, /^552 5\.3\.4 The message exceeds 10000 bytes$/);
    assert.match(await client.mail("a@b.example", [TO], `${HEAD}\r\nsmall`), /^250 /);
    client.close();
  });

  test("connections are bounded in all and per address", async () => {
    const stage = await start({ inbound_connections_per_address_max: 2 });
    const first = await openSmtp(stage.smtpPort);
    const second = await openSmtp(stage.smtpPort);
    const third = await connectSmtp(stage.smtpPort);
    assert.match(await third.reply(), /^421 4\.7\.0 Too many connections from your address$/);
    first.close();
    await waitFor(async () => {
      const again = await connectSmtp(stage.smtpPort);
      const greeting = await again.reply();
      again.close();
      return greeting.startsWith("220");
    });
    second.close();
  });

  test("the memory of contents is bounded per address, and free again after each mail", async () => {
    const stage = await start({ inbound_bytes_max: 10_000, body_bytes_max: 20_000 });
    const held = await openSmtp(stage.smtpPort);
    const other = await openSmtp(stage.smtpPort);
    for (const line of ["MAIL FROM:<a@b.example>", `RCPT TO:<${TO}>`, "DATA"]) {
      await held.command(line);
    }
    held.write(`${HEAD}\r\n${"x".repeat(8_000)}\r\n`);
    const mail = `${HEAD}\r\n${"y".repeat(8_000)}`;
    await waitFor(async () => {
      const reply = await other.mail("a@b.example", [TO], mail);
      return reply.startsWith("452 4.3.1");
    });
    held.write(".\r\n");
    assert.match(await held.reply(), /^250 /);
    assert.match(await other.mail("a@b.example", [TO], mail), /^250 /);
    held.close();
    other.close();
  });

  test("half of the TLS files is a clear error", async () => {
    await assert.rejects(
      startStage({ inbound_port: 0, inbound_tls_cert: "/nowhere/cert.pem" }),
      /inbound_tls_key is not set: STARTTLS requires/,
    );
  });

  test("messages per minute are bounded", async () => {
    const stage = await start({ inbound_rate_per_minute: 2 });
    const client = await openSmtp(stage.smtpPort);
    for (const expected of [/^250 /, /^250 /, /^450 4\.7\.1 /]) {
      assert.match(await client.mail("a@b.example", [TO], `${HEAD}\r\nx`), expected);
    }
    client.close();
    stage.advance(60_000);
    const later = await openSmtp(stage.smtpPort);
    assert.match(await later.mail("a@b.example", [TO], `${HEAD}\r\nx`), /^250 /);
    later.close();
  });

  test("parameters that were not offered are 555 (RFC 5321 section 4.1.1.11)", async () => {
    const stage = await start();
    const client = await openSmtp(stage.smtpPort);
    const rcpt = `RCPT TO:<${TO}>`;
    for (const [command, reply] of [
      ["MAIL FROM:<a@b.example> RET=HDRS", /^555 5\.5\.4 /],
      ["MAIL FROM:<a@b.example> SMTPUTF8", /^555 /],
      ["MAIL FROM:<a@b.example> AUTH=<>", /^555 /],
      ["MAIL FROM:<a@b.example> SIZE=100 X-OWN=1", /^555 /],
      ["MAIL FROM:<a@b.example> SIZE=100 BODY=8BITMIME", /^250 /],
      [`${rcpt} NOTIFY=NEVER`, /^555 /],
      [`${rcpt} ORCPT=rfc822;a@b.example`, /^555 /],
      [rcpt, /^250 /],
      [rcpt.replace(/<([^@]+)@/, '<"$1"@'), /^250 /],
    ] as const) {
      assert.match(await client.command(command), reply, command);
    }
    client.close();
  });

  test("a message that is cut off is not stored", async () => {
    const stage = await start();
    const client = await openSmtp(stage.smtpPort);
    await client.command("MAIL FROM:<a@b.example>");
    await client.command(`RCPT TO:<${TO}>`);
    await client.command("DATA");
    client.write(`${HEAD}\r\nincomplete\r\n.`);
    client.close();
    await waitFor(() => stage.log.some((line) => line.includes("ECONNECTION")));
    assert.equal(await countStored(stage), 0);
  });
});

describe("hostile MIME", () => {
  test("deep nesting, many parts, huge headers and loops get 554", async () => {
    const stage = await start();
    const nested = Array.from(
      { length: 200 },
      (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\r\n\r\n--b${index}`,
    ).join("\r\n");
    const cases = {
      "5.6.0 The message has too many": [
        nested,
        nested.replaceAll("multipart", "MultiPart"),
        `Content-Type: multipart/mixed; boundary=b\r\n\r\n${"--b\r\n\r\n".repeat(10_001)}`,
      ],
      "5.6.0 The header exceeds": [`X-Large: ${"a\r\n ".repeat(100_000)}\r\n\r\nx`],
      "5.4.6 Mail loop": [`${"Received: from a by b; now\r\n".repeat(51)}\r\nx`],
    };
    for (const [expected, contents] of Object.entries(cases)) {
      for (const content of contents) {
        const client = await openSmtp(stage.smtpPort);
        const reply = await client.mail("a@b.example", [TO], `${HEAD}${content}`);
        assert.equal(reply.slice(0, 4 + expected.length), `554 ${expected}`);
        client.close();
      }
    }
    assert.equal(await countStored(stage), 0);
  });

  test("messages without header, with NUL and with raw bytes are stored as they are", async () => {
    const stage = await start();
    for (const content of ["", "no header", "Subject: \0\xff\xfe\r\n\r\n\0", ": x\r\n\r\ny"]) {
      const client = await openSmtp(stage.smtpPort);
      await client.command("MAIL FROM:<>");
      await client.command(`RCPT TO:<${TO}>`);
      await client.command("DATA");
      client.write(Buffer.from(`${content}\r\n.\r\n`, "latin1"));
      assert.match(await client.reply(), /^250 /, JSON.stringify(content));
      client.close();
    }
    assert.equal(await countStored(stage), 4);
  });
});

test("patterns match addresses and their tags, in linear time", () => {
  const cases: [pattern: string, address: string, expected: boolean][] = [
    ["support@shop.example", "support@shop.example", true],
    ["support@shop.example", "support+42@shop.example", true],
    ["support@shop.example", "support2@shop.example", false],
    ["support+42@shop.example", "support+43@shop.example", false],
    ["support+*@shop.example", "support@shop.example", false],
    ["*@shop.example", "a@b.shop.example", false],
    ["*@*.shop.example", "a@b.shop.example", true],
    ["*@shop.example", "a@evil.example@shop.example", true],
    ["a*a@shop.example", "a@shop.example", false],
    ["a*b*c@shop.example", "aXbYc@shop.example", true],
    ["a*b*c@shop.example", "acb@shop.example", false],
  ];
  for (const [pattern, address, expected] of cases) {
    assert.equal(matchesPattern(pattern, address), expected, `${pattern} ${address}`);
  }
  const startedMs = performance.now();
  matchesPattern(`${"*a".repeat(8)}b@x`, `${"a".repeat(100_000)}@x`);
  // Backtracking takes longer than any test.
  assert.ok(performance.now() - startedMs < 20_000);
});
