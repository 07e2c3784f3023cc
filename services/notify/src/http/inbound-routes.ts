// Inbound mail: rules, received messages, repeated forwards.
import { z } from "zod";
import type { EgressFetch } from "@platform/kernel/egress";
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  createEtag,
  createValidationError,
  defineRoute,
  nextCursor,
  pageQuery,
  requireIfMatch,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import {
  INBOUND_KINDS,
  INBOUND_STATUSES,
  type InboundForwardRow,
  type InboundRow,
  type InboundRuleRow,
} from "../database/inbound.ts";
import type { Forwarder } from "../inbound/forwarder.ts";
import { findPatternFault, matchesPattern } from "../inbound/pattern.ts";
import type { InboundRules, RuleFields } from "../inbound/rules.ts";
import type { InboundStore } from "../inbound/store.ts";
import { requireManager } from "./access.ts";
import { listMessages, respondRaw } from "./stored-mail.ts";
import { requireAllowedTarget } from "./target.ts";

const PRIORITY_MAX = 1_000_000;

const name = z.string().min(1).max(128);
const match = z.strictObject({
  to_pattern: z
    .string()
    .min(3)
    .max(320)
    .describe("Recipient address in which `*` stands for any characters."),
});
const forwardTo = z.url({ protocol: /^https?$/ }).max(2_048);
const priority = z
  .int()
  .min(-PRIORITY_MAX)
  .max(PRIORITY_MAX)
  .describe("Rules with a higher priority match first.");

const ruleBody = z.strictObject({
  name,
  match,
  forward_to: forwardTo,
  priority: priority.default(0),
});

const rulePatch = z.strictObject({ name, match, forward_to: forwardTo, priority }).partial();

const testBody = z.strictObject({ to: z.string().min(3).max(320) });

const ruleAnswer = z
  .object({
    rule_id: z.string(),
    name: z.string(),
    match: z.object({ to_pattern: z.string() }),
    forward_to: z.string(),
    priority: z.int(),
    created_at: z.string(),
  })
  .meta({ id: "InboundRule" });

const receivedMessage = z.object({
  id: z.string(),
  kind: z.enum(INBOUND_KINDS),
  status: z.enum(INBOUND_STATUSES),
  from: z.string(),
  envelope: z.object({ from: z.string(), to: z.array(z.string()) }),
  subject: z.string(),
  message_id: z.string(),
  client_address: z.string(),
  size_bytes: z.int(),
  spf: z.string(),
  dkim: z.string(),
  dmarc: z.string(),
  arc: z.string(),
  arc_domain: z.string(),
  received_at: z.string(),
});

const forwardAnswer = z.object({
  rule_id: z.string(),
  recipients: z.array(z.string()),
  status: z.enum(["pending", "delivered", "failed"]),
  attempts: z.int(),
  next_attempt_at: z.string().optional(),
  detail: z.string().optional(),
});

/** Parts that the routes use. */
export interface InboundParts {
  rules: InboundRules;
  store: InboundStore;
  forwarder: Forwarder;
  /** Fetches with the egress guard, to check the targets of rules. */
  fetch: EgressFetch;
}

export function createInboundRoutes(parts: InboundParts): ApiRoute[] {
  return [...createRuleRoutes(parts), ...createReceivedRoutes(parts)];
}

function createRuleRoutes({ rules, fetch }: InboundParts): ApiRoute[] {
  const operation = { tag: "Inbound mail", access: requireManager } as const;
  const readPattern = (text: string): string => {
    const pattern = text.toLowerCase();
    const fault = findPatternFault(pattern);
    if (fault === undefined) return pattern;
    throw createValidationError([{ in: "body", path: "match.to_pattern", message: fault }]);
  };
  const readFields = async (body: z.output<typeof ruleBody>): Promise<RuleFields> => {
    const pattern = readPattern(body.match.to_pattern);
    await requireAllowedTarget(fetch, body.forward_to, "forward_to");
    return { name: body.name, pattern, forward_to: body.forward_to, priority: body.priority };
  };
  return [
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/inbound/rules",
      summary: "Create a rule",
      description:
        "The `secret` of the answer verifies the signatures of forwards (Standard Webhooks). It is shown once.",
      body: ruleBody,
      status: 201,
      answer: z.object({ status: z.literal("created"), rule_id: z.string(), secret: z.string() }),
      handle: async ({ body }) => {
        const { id, secret } = await rules.create(await readFields(body));
        return { status: "created" as const, rule_id: id, secret };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbound/rules",
      summary: "List rules in the order in which they are tried",
      answer: z.object({ rules: z.array(ruleAnswer) }),
      handle: async () => {
        await rules.load();
        return { rules: rules.all.map(toRule) };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbound/rules/{id}",
      summary: "Read a rule",
      answer: ruleAnswer,
      handle: ({ params, answerHeaders }) => {
        const rule = rules.get(params["id"]!);
        answerHeaders.set("ETag", tagOf(rule));
        return toRule(rule);
      },
    }),
    defineRoute({
      ...operation,
      method: "PATCH",
      path: "/api/v1/inbound/rules/{id}",
      summary: "Change fields of a rule",
      description:
        "The target is checked again, also if it is not changed. With `If-Match` and the `ETag` of the rule, a change in between is not overwritten.",
      body: rulePatch,
      problems: {
        412: "The rule has changed",
        422: "The target is not allowed",
      },
      answer: ruleAnswer,
      handle: async ({ params, body, headers, answerHeaders }) => {
        await rules.load();
        const rule = rules.get(params["id"]!);
        requireIfMatch(headers, tagOf(rule));
        const { name: newName, match: newMatch, forward_to: target, priority: rank } = body;
        const fields: RuleFields = {
          name: newName ?? rule.name,
          pattern: newMatch === undefined ? rule.pattern : readPattern(newMatch.to_pattern),
          forward_to: target ?? rule.forward_to,
          priority: rank ?? rule.priority,
        };
        await requireAllowedTarget(fetch, fields.forward_to, "forward_to");
        const changed = await rules.update(rule.id, fields, rule);
        answerHeaders.set("ETag", tagOf(changed));
        return toRule(changed);
      },
    }),
    defineRoute({
      ...operation,
      method: "PUT",
      path: "/api/v1/inbound/rules/{id}",
      summary: "Replace a rule",
      body: ruleBody,
      answer: ruleAnswer,
      handle: async ({ params, body }) =>
        toRule(await rules.update(params["id"]!, await readFields(body))),
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/inbound/rules/{id}",
      summary: "Delete a rule",
      answer: NO_BODY,
      handle: async ({ params }) => {
        await rules.remove(params["id"]!);
        return undefined;
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/inbound/rules/{id}/test",
      summary: "Try a rule with a recipient address; no mail is sent",
      description:
        "`applies` is false if another rule, `applied_rule_id`, is tried before this one.",
      body: testBody,
      answer: z.object({
        rule_id: z.string(),
        matches: z.boolean(),
        applies: z.boolean(),
        applied_rule_id: z.string().nullable(),
      }),
      handle: async ({ params, body }) => {
        await rules.load();
        const { id, pattern } = rules.get(params["id"]!);
        const address = body.to.toLowerCase();
        const applied = rules.match(address);
        return {
          rule_id: id,
          matches: matchesPattern(pattern, address),
          applies: applied?.id === id,
          applied_rule_id: applied?.id ?? null,
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/inbound/rules/test",
      summary: "Find the rules that match a recipient address, the one that applies first",
      description: "No mail is sent. Without a rule, mail to the address is refused with 550.",
      body: testBody,
      answer: z.object({ applied_rule_id: z.string().nullable(), rules: z.array(ruleAnswer) }),
      handle: async ({ body }) => {
        await rules.load();
        const matching = rules.matchAll(body.to.toLowerCase());
        return { applied_rule_id: matching[0]?.id ?? null, rules: matching.map(toRule) };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/inbound/rules/{id}/rotate-secret",
      summary: "Replace the secret of a rule",
      description: "The previous secret also signs for 24 hours.",
      answer: z.object({ status: z.literal("rotated"), rule_id: z.string(), secret: z.string() }),
      handle: async ({ params }) => {
        const { id, secret } = await rules.rotateSecret(params["id"]!);
        return { status: "rotated" as const, rule_id: id, secret };
      },
    }),
  ];
}

function createReceivedRoutes({ store, forwarder }: InboundParts): ApiRoute[] {
  const operation = { tag: "Inbound mail", access: requireManager } as const;
  const find = async (id: string): Promise<InboundRow> => {
    const row = await store.get(id);
    if (row === undefined) throw new PlatformError("not_found", "There is no such message.");
    return row;
  };
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbound/messages",
      summary: "List received messages, newest first",
      query: pageQuery.extend({
        kind: z.enum(INBOUND_KINDS).optional(),
        status: z.enum(INBOUND_STATUSES).optional(),
      }),
      answer: z.object({ messages: z.array(receivedMessage), next_cursor: nextCursor }),
      handle: async ({ query }) => {
        const list = {
          key: z.string().max(64),
          read: (limit: number, before: string | undefined) => store.list(query, limit, before),
          keyOf: ({ id }: InboundRow) => id,
        };
        return listMessages(query, list, toMessage);
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbound/messages/{id}",
      summary: "Read a received message and the state of its forwards",
      answer: receivedMessage.extend({ forwards: z.array(forwardAnswer) }),
      handle: async ({ params }) => {
        const row = await find(params["id"]!);
        const forwards = await store.listForwards(row.id);
        return { ...toMessage(row), forwards: forwards.map(toForward) };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/inbound/messages/{id}/raw",
      summary: "The message as it was received, with trace fields",
      answer: bytes("message/rfc822"),
      handle: async ({ params }) => {
        const { id } = await find(params["id"]!);
        const content = await store.readContent(id);
        if (content === undefined) throw new PlatformError("gone", "The content has expired.");
        return respondRaw(content);
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/inbound/messages/{id}/forward",
      summary: "Forward a message again, or release it from quarantine",
      status: 202,
      answer: z.object({ status: z.literal("queued"), forwards: z.int() }),
      handle: async ({ params }) => {
        const { id } = await find(params["id"]!);
        const count = await store.forwardAgain(id);
        if (count === 0) throw new PlatformError("conflict", "No rule matched the message.");
        forwarder.wake();
        return { status: "queued" as const, forwards: count };
      },
    }),
  ];
}

function tagOf({ name: ruleName, pattern, forward_to, priority: rank }: RuleFields): string {
  return createEtag(JSON.stringify([ruleName, pattern, forward_to, rank]));
}

function toRule({ id, name, pattern, forward_to, priority, created_at }: InboundRuleRow) {
  return {
    rule_id: id,
    name,
    match: { to_pattern: pattern },
    forward_to,
    priority,
    created_at: new Date(created_at).toISOString(),
  };
}

function toMessage(row: InboundRow) {
  return {
    id: row.id,
    kind: row.kind,
    status: row.status,
    from: row.header_from,
    envelope: { from: row.sender, to: JSON.parse(row.recipients) as string[] },
    subject: row.subject,
    message_id: row.message_id,
    client_address: row.client_address,
    size_bytes: row.size_bytes,
    spf: row.spf,
    dkim: row.dkim,
    dmarc: row.dmarc,
    arc: row.arc,
    arc_domain: row.arc_domain,
    received_at: new Date(row.received_at).toISOString(),
  };
}

function toForward({ rule_id, recipients, status, attempts, due_at, detail }: InboundForwardRow) {
  return {
    rule_id,
    recipients: JSON.parse(recipients) as string[],
    status,
    attempts,
    ...(due_at === null ? {} : { next_attempt_at: new Date(due_at).toISOString() }),
    ...(detail === null ? {} : { detail }),
  };
}
