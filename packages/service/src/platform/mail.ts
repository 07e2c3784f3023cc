// Mail: sending over the HTTP API.
import { callPlatform } from "./platform-call.ts";
import { requireSettings } from "./required.ts";

export interface MailAttachment {
  filename: string;
  content: string | Uint8Array;
  /** Default `application/octet-stream`. */
  type?: string;
}

interface Envelope {
  /** Address, `Name <address>`, or up to 50 of them. */
  to: string | readonly string[];
  /** Default: the platform's sender. */
  from?: string;
  cc?: readonly string[];
  bcc?: readonly string[];
  replyTo?: string | readonly string[];
  attachments?: readonly MailAttachment[];
  headers?: Readonly<Record<string, string>>;
  tags?: readonly string[];
  /** Time of delivery; default now. */
  sendAt?: Date;
}

/** A mail: its content, or a template of mail with its variables. */
export type Mail =
  | (Envelope & { subject: string; text?: string; html?: string })
  | (Envelope & {
      template: string;
      variables?: Readonly<Record<string, unknown>>;
      /** Language variant, such as `de-AT`. */
      locale?: string;
    });

/** Options of `mail.send`. */
export interface SendOptions {
  /** A repetition with the same key sends nothing and has the same result. 1 to 255 visible ASCII characters. */
  idempotencyKey?: string;
}

/** Result of `mail.send`. */
export interface SentMail {
  readonly id: string;
  /** `sent` if the relay has accepted it, otherwise `queued`. */
  readonly status: "sent" | "queued";
}

const PART = "mail";
const SCOPE = "notify:send";

/** Sends a mail; resolves when it is stored. */
export async function sendMail(mail: Mail, { idempotencyKey }: SendOptions): Promise<SentMail> {
  const { sendAt, replyTo, attachments, ...rest } = mail;
  const answer = await callPlatform({
    part: PART,
    base: requireSettings(PART, ["mail_url"]).mail_url,
    scope: SCOPE,
    method: "POST",
    path: "template" in mail ? "/api/v1/send/template" : "/api/v1/send",
    headers: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey },
    body: {
      ...rest,
      reply_to: replyTo,
      send_at: sendAt?.toISOString(),
      attachments: attachments?.map(({ filename, content, type }) => ({
        filename,
        content: Buffer.from(content as string).toString("base64"),
        content_type: type,
      })),
    },
  });
  const { message_id: id, status } = (await answer.json()) as {
    message_id: string;
    status: SentMail["status"];
  };
  return { id, status };
}
