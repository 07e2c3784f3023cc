// Other programs as clients: nodemailer and Python's smtplib send to the inbound port, Python's email reads what we compose,
// curl uses the API. swaks and Postfix are in inbound/postfix.test.ts, standardwebhooks in webhook/webhook.test.ts.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { createTransport } from "nodemailer";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer } from "../dns-server.ts";
import { startHookServer } from "../receiver.ts";
import { startStage, type Stage } from "../stage.ts";

const run = promisify(execFile);
const PYTHON = "python3";
const OPEN: { close(): Promise<void> | void }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function startInbound() {
  const dns = await startDnsServer({});
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
    name: "support",
    match: { to_pattern: "support@shop.example" },
    forward_to: hooks.url,
  });
  return { stage, hooks };
}

describe("nodemailer", () => {
  test("sends a mail with HTML and an attachment, which the rule's target gets", async () => {
    const { stage, hooks } = await startInbound();
    const transport = createTransport({ host: "127.0.0.1", port: stage.smtpPort, pool: true });
    OPEN.push({ close: () => transport.close() });
    const mail = {
      from: { name: "Zoë", address: "zoe@sender.example" },
      to: "support@shop.example",
      subject: "Grüße 🎉",
      text: "Hallo\n.\n.. Ende",
      html: "<p>Hallo</p>",
      attachments: [{ filename: "Rechnung ü.txt", content: "hundert €" }],
    };
    for (let count = 1; count <= 2; count += 1) {
      const { response, accepted } = await transport.sendMail(mail);
      assert.match(response ?? "", /^250 2\.0\.0 Stored as /);
      assert.deepEqual(accepted, ["support@shop.example"]);
      const { body } = await waitFor(() => hooks.requests[count - 1]);
      assert.equal(body.from, "Zoë <zoe@sender.example>");
      assert.equal(body.subject, mail.subject);
      assert.equal(body.text.trimEnd(), mail.text);
      assert.equal(body.html.trim(), mail.html);
      assert.equal(body.attachments[0].filename, "Rechnung ü.txt");
      assert.equal(Buffer.from(body.attachments[0].content, "base64").toString(), "hundert €");
    }
  });

  test("is told which recipient does not exist", async () => {
    const { stage } = await startInbound();
    const transport = createTransport({ host: "127.0.0.1", port: stage.smtpPort });
    const mail = { from: "a@sender.example", to: "nobody@shop.example", subject: "x", text: "x" };
    await assert.rejects(transport.sendMail(mail), (error: Error & { responseCode?: number }) => {
      assert.equal(error.responseCode, 550);
      return true;
    });
  });
});

const SEND = `
import smtplib, sys
from email.message import EmailMessage
mail = EmailMessage()
mail["From"] = "Zoë <zoe@sender.example>"
mail["To"] = "support@shop.example"
mail["Subject"] = "Grüße von Python"
mail.set_content("Hallo\\n.\\nEnde\\n")
mail.add_attachment(b"\\x00\\x01binary", maintype="application", subtype="octet-stream", filename="a.bin")
with smtplib.SMTP("127.0.0.1", int(sys.argv[1])) as client:
    refused = client.send_message(mail, to_addrs=["support@shop.example", "nobody@shop.example"])
print(sorted(refused), refused["nobody@shop.example"][0])
`;
const READ = `
import email, email.policy, json, sys
mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
body = mail.get_body(preferencelist=("plain",))
parts = [[p.get_filename(), p.get_content_type(), p.get_payload(decode=True).hex()] for p in mail.iter_attachments()]
defects = [str(d) for part in mail.walk() for d in part.defects] + [str(d) for v in mail.values() for d in v.defects]
print(json.dumps({
    "from": [[a.display_name, a.addr_spec] for a in mail["From"].addresses],
    "to": [a.addr_spec for a in mail["To"].addresses],
    "subject": mail["Subject"], "text": body.get_content().replace("\\r\\n", "\\n"), "parts": parts, "defects": defects,
}))
`;

async function readWithPython(stage: Stage, path: string) {
  const { text } = await stage.call("GET", path);
  const child = run(PYTHON, ["-c", READ]);
  child.child.stdin!.end(text);
  const { stdout } = await child;
  return JSON.parse(stdout) as {
    from: string[][];
    to: string[];
    subject: string;
    text: string;
    parts: string[][];
    defects: string[];
  };
}

describe("Python", () => {
  test("smtplib sends, is told about the refused recipient, and email reads the raw message", async () => {
    const { stage, hooks } = await startInbound();
    const { stdout } = await run(PYTHON, ["-c", SEND, String(stage.smtpPort)]);
    assert.equal(stdout.trim(), "['nobody@shop.example'] 550");
    const { body } = await waitFor(() => hooks.requests[0]);
    assert.equal(body.subject, "Grüße von Python");
    assert.equal(body.text.trimEnd(), "Hallo\n.\nEnde");
    const read = await readWithPython(stage, `/api/v1/inbound/messages/${body.id}/raw`);
    assert.deepEqual(read.from, [["Zoë", "zoe@sender.example"]]);
    assert.deepEqual(read.parts, [["a.bin", "application/octet-stream", "000162696e617279"]]);
    assert.equal(read.text, "Hallo\n.\nEnde\n");
  });

  test("email reads what the API composed, without defects", async () => {
    const stage = await startStage();
    OPEN.push(stage);
    const subject = `${"Sehr lange Betreffzeile mit Umlauten äöü und 🎉 ".repeat(6)}Ende`;
    const sent = await stage.call("POST", "/api/v1/send", {
      from: "Jörg Müller <joerg@shop.example>",
      to: ["ada@example.org", "bob@bücher.example"],
      subject,
      text: "Zeile 1\n.\nFrom hier\n\täöü " + "x".repeat(2_000),
      html: "<p>äöü</p>",
      attachments: [
        { filename: "Bericht für März.txt", content: "SGFsbG8=", content_type: "text/plain" },
      ],
    });
    assert.equal(sent.status, 200, sent.text);
    const read = await readWithPython(stage, `/api/v1/inbox/${sent.body.message_id}/raw`);
    assert.deepEqual(read.defects, []);
    assert.deepEqual(read.from, [["Jörg Müller", "joerg@shop.example"]]);
    assert.deepEqual(read.to, ["ada@example.org", "bob@xn--bcher-kva.example"]);
    assert.equal(read.subject, subject);
    assert.equal(read.text.trimEnd(), `Zeile 1\n.\nFrom hier\n\täöü ${"x".repeat(2_000)}`);
    assert.deepEqual(read.parts, [["Bericht für März.txt", "text/plain", "48616c6c6f"]]);
  });
});

test("curl: the commands of the README send a mail and read it", async () => {
  const stage = await startStage({ from_domain: "shop.example" });
  OPEN.push(stage);
  const curl = async (path: string, ...args: string[]): Promise<string> =>
    (await run("curl", ["-sS", "--fail-with-body", stage.url + path, ...args])).stdout;
  const json = ["-H", "Content-Type: application/json"];
  const mail = '{"to":"ada@example.org","subject":"Hello","text":"Hello Ada"}';
  const sent = JSON.parse(await curl("/api/v1/send", ...json, "-d", mail)) as {
    message_id: string;
  };
  const { messages } = JSON.parse(await curl("/api/v1/inbox")) as {
    messages: { subject: string }[];
  };
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ["Hello"],
  );
  assert.match(await curl(`/api/v1/inbox/${sent.message_id}/raw`), /^Subject: Hello\r$/m);
  const template = '{"name":"welcome","subject":"Hi {{ name }}","text":"Hi {{ name }}"}';
  await curl("/api/v1/templates", ...json, "-d", template);
  const request = '{"template":"welcome","to":"ada@example.org","variables":{"name":"Ada"}}';
  assert.match(await curl("/api/v1/send/template", ...json, "-d", request), /"status":"sent"/);
  const csv = [
    "-H",
    "Content-Type: text/csv",
    "--data-binary",
    "email,reason\nbob@example.org,manual\n",
  ];
  assert.match(await curl("/api/v1/suppression/import", ...csv), /"count":1/);
  assert.match(await curl("/api/v1/suppression/export"), /bob@example\.org,manual,/);
  await assert.rejects(curl("/api/v1/send", ...json, "-d", mail.replace("ada", "bob")), /422/);
});
