// Acknowledgements of group members that cannot send them on their own connection: subscribers by server-sent events.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { SharedSubscription } from "../dispatch/shared-subscription.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import { toPublishError } from "../publish/publish-error.ts";
import type { Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";

const bodySchema = z.strictObject({
  topic: z.string(),
  group: z.string(),
  message_id: z.string().min(1).optional().describe("The `message_id` of the delivery."),
  id: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Instead of `message_id`: the message id, or `partition:offset`, the id of the event.",
    ),
});

const success = z.object({ status: z.literal("success") });

type Body = z.output<typeof bodySchema>;

/** Options of the acknowledgement routes. */
export interface AcknowledgementRoutesOptions {
  admission: Admission;
  topics: Topics;
  groups: SharedSubscriptions;
}

export function createAcknowledgementRoutes({
  topics,
  groups,
  admission,
}: AcknowledgementRoutesOptions): ApiRoute[] {
  const problems = {
    400: "Neither `message_id` nor `id`, or both",
    404: "No member of the group holds the message: it was acknowledged, or timed out",
    507: "The disk is full: the acknowledgement is stored once there is space, and lost if the broker stops before",
  };
  const answer = async (
    caller: Caller,
    body: Body,
    settle: (group: SharedSubscription, id: string) => boolean,
  ) => {
    const id = readId(body);
    const tenant = tenantOf(caller);
    const topic = topics.get(tenant, admission.allow(caller, "subscribe", body.topic));
    const group = groups.find(tenant, body.group, topic);
    if (group === undefined || !settle(group, id)) {
      throw new PlatformError("not_found", "No member of the group holds the message.");
    }
    await groups.save().catch((error: unknown) => {
      throw toPublishError(error);
    });
    return { status: "success" as const };
  };
  return [
    defineRoute({
      method: "POST",
      path: "/api/v1/ack",
      summary: "Acknowledge a message that a group member received with ack=manual",
      tag: "Groups",
      access: admission.subscribers,
      body: bodySchema,
      problems,
      answer: success,
      handle: ({ body, caller }) => answer(caller, body, (group, id) => group.acknowledge(id)),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/nack",
      summary: "Reject a message that a group member received with ack=manual",
      description:
        "The next member gets it after a back-off (`nack_backoff_ms`, doubling); once it has failed " +
        "`max_deliveries` times it becomes a dead letter.",
      tag: "Groups",
      access: admission.subscribers,
      body: bodySchema,
      problems,
      answer: success,
      handle: ({ body, caller }) => answer(caller, body, (group, id) => group.giveBack(id)),
    }),
  ];
}

function readId({ message_id, id }: Body): string {
  if (message_id !== undefined && id === undefined) return message_id;
  if (id !== undefined && message_id === undefined) return id;
  throw new PlatformError("validation_failed", "Either message_id or id is required.");
}
