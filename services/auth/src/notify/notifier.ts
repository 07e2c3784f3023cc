// Messages to users, delivered by the mail service over its HTTP API.
import { PlatformError } from "@platform/kernel/errors";

const TIMEOUT_MS = 10_000;

/** Options of the notifier. */
export interface NotifierOptions {
  /** Base URL of the mail service; `undefined` without one. */
  url: string | undefined;
  token: string | undefined;
  from: string;
}

/** A message. */
export interface Message {
  to: string;
  subject: string;
  text: string;
}

/** Sends messages. Throws 409 without a mail service or a gateway for SMS, 503 while the service is unavailable. */
export class Notifier {
  readonly #options: NotifierOptions;

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
  sendEmail(message: Message): Promise<void> {
    return this.#post({ ...message, from: this.#options.from });
  }

  /** Sends an SMS to a number in E.164 form. */
  sendSms(to: string, text: string): Promise<void> {
    return this.#post({ channel: "sms", to, text });
  }

  // Codes and links are secrets: the mail service erases them after delivery.
  async #post(message: Readonly<Record<string, string>>): Promise<void> {
    this.requireChannel();
    const { url, token } = this.#options;
    let response: Response;
    let code: string | undefined;
    try {
      response = await fetch(new URL("/api/v1/send", url), {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ ...message, sensitive: true }),
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.status === 422) code = await readProblemCode(response);
      else await response.body?.cancel();
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
    throw new PlatformError("unavailable", "The message could not be sent.", {
      cause: new Error(`the mail service returned ${response.status}`),
      headers: { "Retry-After": "5" },
    });
  }
}

async function readProblemCode(response: Response): Promise<string | undefined> {
  const problem: unknown = await response.json().catch(() => undefined);
  const isProblem = typeof problem === "object" && problem !== null && "code" in problem;
  return isProblem && typeof problem.code === "string" ? problem.code : undefined;
}
