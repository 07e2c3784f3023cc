// Messages to users, delivered by the mail service over its HTTP API.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { createIdSource } from "@platform/kernel/ids";
import type { LiveSecret } from "@platform/kernel/secrets";
import { createTraceHeaders } from "@platform/kernel/trace";

const TIMEOUT_MS = 10_000;

/** Options of the notifier. */
export interface NotifierOptions {
  /** Base URL of the mail service; `undefined` without one. */
  url: string | undefined;
  token: LiveSecret | undefined;
  from: string;
}

/** A message. */
export interface Message {
  to: string;
  subject: string;
  text: string;
  /** The message is of no use, and not sent, after this time in ms. */
  expiresAt?: number | undefined;
}

/**
 * Sends messages. Throws 409 without a mail service or a gateway for SMS, 422 `recipient_rejected` if the recipient does not
 * accept them, 503 while the service is unavailable.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #ids = createIdSource();

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** True if a mail service is configured. */
  get isAvailable(): boolean {
    return this.#options.url !== undefined;
  }

  /** Throws `channel_unavailable` if no mail service is configured. */
  requireChannel(): void {
    if (this.isAvailable) return;
    throw new PlatformError(
      "channel_unavailable",
      "Messages cannot be sent: no mail service is configured.",
    );
  }

  /** Sends an email; resolves when the mail service has accepted it. */
  sendEmail({ expiresAt, ...message }: Message): Promise<void> {
    return this.#post({ ...message, from: this.#options.from, ...formatExpiry(expiresAt) });
  }

  /** Sends an SMS to a number in E.164 form; not after `expiresAt`. */
  sendSms({ to, text, expiresAt }: Omit<Message, "subject">): Promise<void> {
    return this.#post({ channel: "sms", to, text, ...formatExpiry(expiresAt) });
  }

  // Codes and links are secrets: the mail service erases them after delivery.
  async #post(message: Readonly<Record<string, string>>): Promise<void> {
    this.requireChannel();
    const { url, token } = this.#options;
    let response: Response;
    let code: string | undefined;
    let isRefused = false;
    try {
      response = await fetch(new URL("/api/v1/send", url), {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...createTraceHeaders(this.#ids),
          ...(token === undefined ? {} : { Authorization: `Bearer ${token.value}` }),
        },
        body: JSON.stringify({ ...message, sensitive: true }),
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.status === 400 || response.status === 422) {
        const problem = await readProblem(response);
        code = problem.code;
        isRefused = isAboutRecipient(problem);
      } else {
        await response.body?.cancel();
      }
    } catch (cause) {
      throw new PlatformError("unavailable", "The message could not be sent.", {
        cause,
        headers: { "Retry-After": "5" },
      });
    }
    if (response.ok) return;
    if (code === "channel_unavailable") {
      throw new PlatformError(
        "channel_unavailable",
        "The message cannot be sent: the mail service has no gateway for this channel.",
      );
    }
    if (isRefused) {
      // Neither the address nor the reply of its server: callers may hold nothing but a token of the first factor.
      throw new PlatformError(
        "recipient_rejected",
        "The recipient does not accept messages: the address or number does not exist, or is blocked.",
      );
    }
    throw new PlatformError("unavailable", "The message could not be sent.", {
      cause: new Error(`the mail service returned ${response.status}`),
      headers: { "Retry-After": "5" },
    });
  }
}

function formatExpiry(expiresAt: number | undefined): Record<string, string> {
  return expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() };
}

/** The members of a problem document that decide what a refusal means. */
const problemSchema = z
  .object({
    code: z.string().optional(),
    errors: z.array(z.object({ path: z.string() })).default([]),
  })
  .catch({ errors: [] });

type Problem = z.output<typeof problemSchema>;

async function readProblem(response: Response): Promise<Problem> {
  return problemSchema.parse(await response.json().catch(() => undefined));
}

// Suppressed, refused by its server or gateway, or not an address that mail can be sent to.
function isAboutRecipient({ code, errors }: Problem): boolean {
  if (code === "recipient_suppressed" || code === "recipient_rejected") return true;
  return code === "validation_failed" && errors.some(({ path }) => path === "to");
}
