// The answer to a send request.
import { PlatformError } from "@platform/kernel/errors";
import type { DeliveryStatus } from "../database/message.ts";

/** State of a delivery when the request is answered. */
export interface RecipientResult {
  address: string;
  status: DeliveryStatus;
  code?: number | undefined;
  enhanced?: string | undefined;
  detail?: string | undefined;
}

/** Status and body of an answer. */
export interface SendAnswer {
  status: 200 | 202;
  body: Record<string, unknown>;
}

/** Facts of an answer. */
export interface AnswerInput {
  messageId: string;
  deliveredAtMs: number;
  recipients: readonly RecipientResult[];
  /** Addresses that were left out. */
  suppressed: readonly string[];
  template?: { name: string; warnings: readonly string[] } | undefined;
}

/**
 * Creates the answer: 200 `sent` if at least one recipient was accepted, 202 `queued` if the outcome is open. Throws
 * `recipient_rejected` if all were refused.
 */
export function createAnswer(input: AnswerInput): SendAnswer {
  const { messageId, recipients, suppressed, template } = input;
  const details = {
    ...(recipients.length > 1 ? { recipients } : {}),
    ...(suppressed.length > 0 ? { suppressed } : {}),
    ...(template === undefined ? {} : { template: template.name }),
    ...(template === undefined || template.warnings.length === 0
      ? {}
      : { warnings: template.warnings }),
  };
  if (recipients.some(({ status }) => status === "sent")) {
    const deliveredAt = new Date(input.deliveredAtMs).toISOString();
    const body = { status: "sent", message_id: messageId, delivered_at: deliveredAt, ...details };
    return { status: 200, body };
  }
  if (recipients.some(({ status }) => status === "queued" || status === "deferred")) {
    return { status: 202, body: { status: "queued", message_id: messageId, ...details } };
  }
  const [first] = recipients;
  throw new PlatformError("recipient_rejected", describeRejection(first!), {
    fields: {
      delivery_status: first!.status,
      smtp_code: first!.code,
      enhanced_code: first!.enhanced,
      message_id: messageId,
      ...details,
    },
  });
}

function describeRejection({ address, code, enhanced, detail }: RecipientResult): string {
  const reply = [code, enhanced, detail].filter((part) => part !== undefined).join(" ");
  return `The message to ${address} was rejected: ${reply}`;
}
