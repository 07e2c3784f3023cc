// Mail in memory: what was sent, with the refusals of the real service.
import {
  answerJson,
  FakeRefusal,
  parseJson,
  type FakeAnswer,
  type FakeRequest,
} from "./exchange.ts";

/** A mail that the service under test has sent. */
export interface FakeMail {
  readonly id: string;
  readonly to: readonly string[];
  readonly from: string | undefined;
  readonly cc: readonly string[];
  readonly bcc: readonly string[];
  readonly subject: string | undefined;
  readonly text: string | undefined;
  readonly html: string | undefined;
  readonly template: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly attachments: readonly { filename: string; type: string; content: Buffer }[];
  /** Time of delivery; undefined: immediately. */
  readonly sendAt: Date | undefined;
}

const SENT_MAX = 10_000;
const RECIPIENTS_MAX = 50;
const ADDRESS = /^(?:[^<>]*<)?[^\s<>@,]+@[^\s<>@,]+\.?[^\s<>@,]*>?$/;

/** Mails, oldest first. */
export class FakeMailbox {
  readonly sent: FakeMail[] = [];
  readonly #keys = new Map<string, { body: string; answer: object }>();

  /** Forgets all mails. */
  clear(): void {
    this.sent.length = 0;
    this.#keys.clear();
  }

  handle(request: FakeRequest): FakeAnswer {
    const isTemplate = request.path === "api/v1/send/template";
    if (request.method !== "POST" || (!isTemplate && request.path !== "api/v1/send")) {
      throw new FakeRefusal(404, "not_found", "The fake of mail has sending only.");
    }
    const key = request.headers["idempotency-key"];
    const body = request.body.toString("utf8");
    const known = typeof key === "string" ? this.#keys.get(key) : undefined;
    if (known !== undefined && known.body !== body) {
      const detail = "The Idempotency-Key was used with another request.";
      throw new FakeRefusal(409, "conflict", detail);
    }
    if (known !== undefined) return answerJson(known.answer, 202);
    const mail = readMail(parseJson(request), `mail-${this.sent.length + 1}`);
    if (this.sent.length >= SENT_MAX) {
      throw new FakeRefusal(503, "unavailable", `The fake of mail keeps ${SENT_MAX} mails.`);
    }
    this.sent.push(mail);
    const answer = { message_id: mail.id, status: "queued" };
    if (typeof key === "string") this.#keys.set(key, { body, answer });
    return answerJson(answer, 202);
  }
}

function readMail(body: Record<string, unknown>, id: string): FakeMail {
  const text = (name: string): string | undefined =>
    typeof body[name] === "string" ? body[name] : undefined;
  const list = (name: string): string[] => [body[name] ?? []].flat().map(String);
  const to = list("to");
  const recipients = [...to, ...list("cc"), ...list("bcc")];
  if (to.length === 0) throw invalid("to: required");
  if (recipients.length > RECIPIENTS_MAX) throw invalid(`to: at most ${RECIPIENTS_MAX} addresses`);
  const wrong = recipients.find((address) => !ADDRESS.test(address));
  if (wrong !== undefined) throw invalid(`to: ${wrong} is not an address`);
  if (text("template") === undefined) {
    if (text("subject") === undefined) throw invalid("subject: required");
    if ((text("text") ?? text("html")) === undefined) throw invalid("text or html is required");
  }
  const attachments = (body["attachments"] ?? []) as Record<string, string>[];
  const sendAt = text("send_at");
  return {
    id,
    to,
    from: text("from"),
    cc: list("cc"),
    bcc: list("bcc"),
    subject: text("subject"),
    text: text("text"),
    html: text("html"),
    template: text("template"),
    variables: (body["variables"] ?? {}) as Record<string, unknown>,
    headers: (body["headers"] ?? {}) as Record<string, string>,
    tags: list("tags"),
    attachments: attachments.map(({ filename = "", content = "", content_type }) => ({
      filename,
      type: content_type ?? "application/octet-stream",
      content: Buffer.from(content, "base64"),
    })),
    sendAt: sendAt === undefined ? undefined : new Date(sendAt),
  };
}

function invalid(detail: string): FakeRefusal {
  return new FakeRefusal(400, "validation_failed", detail);
}
