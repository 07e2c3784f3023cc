// Messages to users, delivered by the notification service over its HTTP API.
import { PlatformError } from "@platform/kernel/errors";

const TIMEOUT_MS = 10_000;

/** How to reach the notification service. */
export interface NotifierOptions {
  /** Undefined: there is none. */
  url: string | undefined;
  token: string | undefined;
  from: string;
}

/** One message. */
export interface Message {
  to: string;
  subject: string;
  text: string;
}

/** Sends messages. What it cannot deliver it says so: 409 without a service, 503 while the service is away. */
export class Notifier {
  readonly #options: NotifierOptions;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** Whether there is a service that takes messages. */
  get isAvailable(): boolean {
    return this.#options.url !== undefined;
  }

  /** Throws `channel_unavailable` unless messages can be sent at all. */
  requireChannel(): void {
    if (this.isAvailable) return;
    throw new PlatformError(
      "channel_unavailable",
      "Messages cannot be sent: no notification service is configured.",
    );
  }

  /** Sends by email; resolves when the notification service has taken it. */
  sendEmail(message: Message): Promise<void> {
    return this.#post({ ...message, from: this.#options.from });
  }

  /** Sends by SMS to a number in E.164 form. */
  sendSms(to: string, text: string): Promise<void> {
    return this.#post({ channel: "sms", to, text });
  }

  async #post(body: Readonly<Record<string, string>>): Promise<void> {
    this.requireChannel();
    const { url, token } = this.#options;
    let response: Response;
    try {
      response = await fetch(new URL("/api/v1/send", url), {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(body),
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
    } catch (cause) {
      throw new PlatformError("unavailable", "The message could not be sent.", {
        cause,
        headers: { "Retry-After": "5" },
      });
    }
    if (response.ok) return;
    throw new PlatformError("unavailable", "The message could not be sent.", {
      cause: new Error(`the notification service answered ${response.status}`),
      headers: { "Retry-After": "5" },
    });
  }
}
