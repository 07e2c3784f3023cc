// The answer to a send request.
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import { DELIVERY_STATUSES } from "../database/message.ts";

const recipientResult = z.object({
  address: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  code: z.int().optional(),
  enhanced: z.string().optional(),
  detail: z.string().optional(),
});

/** State of a delivery when the request is answered. */
export type RecipientResult = z.infer<typeof recipientResult>;

/** Body of the answer to a send request, for the API. */
export const sendAnswer = z
  .object({
    status: z
      .enum(["sent", "queued"])
      .describe("sent: the relay accepted the message for at least one recipient"),
    message_id: z.string(),
    delivered_at: z.string().optional().describe("If it was sent"),
    recipients: z.array(recipientResult).readonly().optional().describe("If there are several"),
    suppressed: z.array(z.string()).readonly().optional().describe("Addresses that were left out"),
    template: z.string().optional(),
    warnings: z.array(z.string()).readonly().optional(),
    resent_from: z.string().optional().describe("Id of the message whose content it repeats"),
  })
  .meta({ id: "SendAnswer" });

/** Status and body of an answer. */
export interface SendAnswer {
  status: 200 | 202;
  body: z.infer<typeof sendAnswer>;
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
    const sent = { status: "sent", message_id: messageId, delivered_at: deliveredAt } as const;
    return { status: 200, body: { ...sent, ...details } };
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
