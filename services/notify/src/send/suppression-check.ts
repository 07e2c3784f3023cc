// Removes suppressed recipients from a message before it is accepted.
import { PlatformError } from "@platform/kernel/errors";
import type { Span, Tracer } from "@platform/kernel/trace";
import { toAddressKey } from "../address/mailbox.ts";
import type { Stream } from "../database/message.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { Recipient } from "./recipients.ts";

/** Options of {@link SuppressionCheck}. */
export interface SuppressionCheckOptions {
  suppressions: Suppressions;
  metrics: NotifyMetrics;
  tracer: Tracer;
}

export class SuppressionCheck {
  readonly #options: SuppressionCheckOptions;

  constructor(options: SuppressionCheckOptions) {
    this.#options = options;
  }

  /**
   * Returns the recipients that may receive a message of a stream, and the addresses of the others. Throws
   * `recipient_suppressed` if none of the field `to` is left.
   */
  async apply(
    all: readonly Recipient[],
    stream: Stream,
    span: Span,
  ): Promise<{ recipients: readonly Recipient[]; suppressed: string[] }> {
    const { suppressions, metrics, tracer } = this.#options;
    const check = tracer.startSpan({ name: "notify.suppression.check", parent: span.context });
    const addresses = all.map(({ mailbox }) => mailbox.address);
    const found = await suppressions.find(addresses, stream);
    check.setAttribute("notify.suppressed", found.size);
    check.end();
    if (found.size === 0) return { recipients: all, suppressed: [] };
    const suppressed = addresses.filter((address) => found.has(toAddressKey(address)));
    const recipients = all.filter(({ mailbox }) => !found.has(toAddressKey(mailbox.address)));
    metrics.countSuppressed(suppressed.length);
    if (recipients.some(({ kind }) => kind === "to")) return { recipients, suppressed };
    const [first] = found.values();
    throw new PlatformError(
      "recipient_suppressed",
      `The address ${first!.address} is on the suppression list (${first!.reason}).`,
      { fields: { delivery_status: "suppressed", suppressed, reason: first!.reason } },
    );
  }
}
