// Notification subscriptions: the JSON form of this store, and the three XML forms of S3 with a URL instead of an ARN.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import {
  checkStomp,
  checkWebhook,
  type EventNameForm,
  type EventPolicy,
  TargetError,
} from "../../delivery/target.ts";
import type { NotificationRule } from "../../model/event.ts";
import { checkPart, S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

const RULES_MAX = 100;
/** S3's forms of a configuration: its element, the element of its target, and the `form` of rules. */
const XML_FORMS = [
  ["TopicConfiguration", "Topic", undefined],
  ["QueueConfiguration", "Queue", "queue"],
  ["CloudFunctionConfiguration", "CloudFunction", "function"],
] as const;
const EVENTS: ReadonlySet<string> = new Set([
  "ObjectCreated:*",
  "ObjectCreated:Put",
  "ObjectCreated:Post",
  "ObjectCreated:Copy",
  "ObjectCreated:CompleteMultipartUpload",
  "ObjectRemoved:*",
  "ObjectRemoved:Delete",
  "ObjectRemoved:DeleteMarkerCreated",
  "ObjectTagging:*",
  "ObjectTagging:Put",
  "ObjectTagging:Delete",
  "ObjectAcl:Put",
  "LifecycleExpiration:*",
  "LifecycleExpiration:Delete",
  "LifecycleExpiration:DeleteMarkerCreated",
  "LifecycleTransition",
  "ObjectRestore:*",
  "ObjectRestore:Post",
  "ObjectRestore:Completed",
  "ObjectRestore:Delete",
  "Replication:*",
  "Replication:OperationFailedReplication",
  "Replication:OperationMissedThreshold",
  "Replication:OperationNotTracked",
  "Replication:OperationReplicatedAfterThreshold",
]);

const eventSchema = z
  .string()
  .overwrite((text) => text.replace(/^(?:s3|objstore):/, ""))
  .refine((name) => EVENTS.has(name), {
    error: ({ input }) => `the event ${String(input).slice(0, 100)} is unknown`,
  });
const stompSchema = z.strictObject({
  url: z.string(),
  destination: z.string(),
  user: z.string().optional(),
  password: z.string().optional(),
});

/** A subscription in a request. */
export const subscriptionSchema = z
  .strictObject({
    id: z.string().min(1).max(255).optional(),
    bucket: z.string().optional(),
    events: z.array(eventSchema).min(1).max(50),
    webhook: z.string().optional(),
    stomp: stompSchema.optional(),
    filter: z
      .strictObject({
        prefix: z.string().max(1_024).optional(),
        suffix: z.string().max(1_024).optional(),
      })
      .optional(),
  })
  .refine((item) => (item.webhook === undefined) !== (item.stomp === undefined), {
    error: "expected either webhook or stomp",
  });
const documentSchema = z.union([
  subscriptionSchema.transform((item) => [item]),
  z.array(subscriptionSchema).max(RULES_MAX),
  z
    .strictObject({ subscriptions: z.array(subscriptionSchema).max(RULES_MAX) })
    .transform((item) => item.subscriptions),
]);

/** Converts a subscription to a rule. Throws InvalidArgument for a target that events may not be sent to. */
export function toNotificationRule(
  item: z.output<typeof subscriptionSchema>,
  names: EventNameForm,
  policy: EventPolicy,
): NotificationRule {
  const { filter, stomp } = item;
  return {
    id: item.id ?? randomBytes(12).toString("base64url"),
    events: item.events,
    ...(filter?.prefix === undefined ? {} : { prefix: filter.prefix }),
    ...(filter?.suffix === undefined ? {} : { suffix: filter.suffix }),
    target: { ...checkTarget(item.webhook, stomp, policy), names },
  };
}

function checkTarget(
  webhook: string | undefined,
  stomp: z.output<typeof stompSchema> | undefined,
  policy: EventPolicy,
) {
  try {
    if (stomp === undefined) return checkWebhook(webhook ?? "", policy);
    const { url, destination, user, password } = stomp;
    return checkStomp(
      {
        url,
        destination,
        ...(user === undefined ? {} : { user }),
        ...(password === undefined ? {} : { password }),
      },
      policy,
    );
  } catch (error) {
    if (error instanceof TargetError) {
      throw new S3Error("InvalidArgument", {
        message: `Unable to validate the following destination configurations: ${error.message}`,
        reason: error.message,
        path: [stomp === undefined ? "webhook" : "stomp"],
      });
    }
    throw error;
  }
}

/** GetBucketNotification: XML, or JSON for clients that accept only that. Secrets are omitted. */
export const getBucketNotification: OperationHandler = (context) => {
  const rules = getBucket(context).settings.notification?.rules ?? [];
  if (context.fields.get("accept") === "application/json") {
    return {
      status: 200,
      headers: [["Content-Type", "application/json"]],
      body: JSON.stringify({
        subscriptions: rules.map((rule) => toSubscription(context.bucketName, rule)),
      }),
    };
  }
  return answerXml(xmlDocument("NotificationConfiguration", rules.map(formatRule).join("")));
};

/** PutBucketNotification: replaces all subscriptions of the bucket. */
export const putBucketNotification: OperationHandler = async (context) => {
  const { api, bucketName, expectedBucket } = context;
  const body = await receiveDocument(context);
  if (body.length === 0) throw new S3Error("MissingRequestBodyError");
  const isXml = /^\s*</.test(body.toString("latin1", 0, 100));
  const rules = isXml
    ? parseRules(body, api.eventPolicy)
    : keepPasswords(
        parseJsonRules(body, bucketName, api.eventPolicy),
        getBucket(context).settings.notification?.rules ?? [],
      );
  if (new Set(rules.map((rule) => rule.id)).size !== rules.length) {
    throw new S3Error(
      "InvalidArgument",
      "Same ID used for multiple configurations. IDs must be unique",
    );
  }
  const { buckets } = api.store;
  if (rules.length === 0) await buckets.deleteSetting(bucketName, "notification", expectedBucket);
  else await buckets.setSetting(bucketName, "notification", { rules }, expectedBucket);
  return answerEmpty(200);
};

function parseJsonRules(body: Buffer, bucketName: string, policy: EventPolicy): NotificationRule[] {
  let document: unknown;
  try {
    document = JSON.parse(body.toString("utf8"));
  } catch {
    throw new S3Error("InvalidRequest", "The notification configuration is neither XML nor JSON.");
  }
  const read = documentSchema.safeParse(document);
  if (!read.success) {
    const said = read.error.issues[0]?.message ?? "it is not valid";
    throw new S3Error("InvalidArgument", `The notification configuration is not valid: ${said}.`);
  }
  if (read.data.some((item) => item.bucket !== undefined && item.bucket !== bucketName)) {
    throw new S3Error("InvalidArgument", "A subscription names another bucket.");
  }
  return read.data.map((item, index) =>
    checkPart(["subscriptions", index], () => toNotificationRule(item, "objstore", policy)),
  );
}

// Answers omit passwords, so that a document that was read and put again does not have them.
function keepPasswords(
  rules: readonly NotificationRule[],
  before: readonly NotificationRule[],
): NotificationRule[] {
  return rules.map((rule) => {
    if (rule.target.kind !== "stomp" || rule.target.password !== undefined) return rule;
    const { url, destination, user } = rule.target;
    const known = before.find(
      ({ id, target }) =>
        id === rule.id &&
        target.kind === "stomp" &&
        target.url === url &&
        target.destination === destination &&
        target.user === user,
    );
    return known === undefined ? rule : { ...rule, target: { ...known.target, ...rule.target } };
  });
}

function parseRules(body: Buffer, policy: EventPolicy): NotificationRule[] {
  const root = parseXml(body, "NotificationConfiguration");
  if (root.find("EventBridgeConfiguration") !== undefined)
    throw new S3Error("NotImplemented", "EventBridgeConfiguration is not implemented.");
  root.allow(...XML_FORMS.map(([name]) => name));
  const rules = XML_FORMS.flatMap(([element, target, form]) =>
    root.list(element).map((item) => ({
      ...readRule(item, target, policy),
      ...(form === undefined ? {} : { form }),
    })),
  );
  if (rules.length > RULES_MAX) throw malformedXml("there are too many configurations");
  return rules;
}

function readRule(item: XmlElement, targetName: string, policy: EventPolicy): NotificationRule {
  item.allow("Id", "Event", "Filter", targetName);
  const address = item.getText(targetName).trim();
  const id = item.findText("Id");
  const filterRules = item.find("Filter")?.find("S3Key")?.list("FilterRule") ?? [];
  const filter: { prefix?: string; suffix?: string } = {};
  for (const rule of filterRules) {
    const name = rule.getText("Name").toLowerCase();
    if ((name !== "prefix" && name !== "suffix") || filter[name] !== undefined) {
      throw new S3Error(
        "InvalidArgument",
        "filter rule name must be either prefix or suffix, each once",
      );
    }
    filter[name] = rule.getText("Value");
  }
  const read = subscriptionSchema.safeParse({
    ...(id === undefined || id === "" ? {} : { id }),
    events: item.list("Event").map((event) => event.text.trim()),
    ...(address.startsWith("stomp")
      ? { stomp: readStompAddress(address) }
      : { webhook: address.replace(/^arn:[^:]*:sns:[^:]*:[^:]*:(https?:)/, "$1") }),
    filter,
  });
  if (!read.success) {
    throw new S3Error("InvalidArgument", {
      message:
        "Unable to validate the following destination configurations: a destination is an address that begins with http:, https:, stomp: or stomps:, and events are those of the API.",
      elements: [["ArgumentValue", address.slice(0, 200)]],
    });
  }
  return toNotificationRule(read.data, "s3", policy);
}

// stomp://broker:61613/topic/name, without credentials: those require the JSON form.
function readStompAddress(address: string): { url: string; destination: string } {
  const url = URL.parse(address);
  return { url: `${url?.protocol}//${url?.host}`, destination: url?.pathname ?? "" };
}

/** Formats a subscription in the JSON form, without its password. */
export function toSubscription(bucket: string, rule: NotificationRule) {
  const { kind, url, destination, user } = rule.target as {
    kind: string;
    url: string;
    destination: string;
    user?: string;
  };
  const { prefix, suffix } = rule;
  return {
    id: rule.id,
    bucket,
    events: rule.events.map((name) => `objstore:${name}`),
    ...(kind === "stomp"
      ? { stomp: { url, destination, ...(user === undefined ? {} : { user }) } }
      : { webhook: url }),
    filter: {
      ...(prefix === undefined ? {} : { prefix }),
      ...(suffix === undefined ? {} : { suffix }),
    },
  };
}

function formatRule(rule: NotificationRule): string {
  const { kind, url, destination } = rule.target as Record<string, string>;
  const filters = [
    ["prefix", rule.prefix],
    ["suffix", rule.suffix],
  ].filter(([, value]) => value !== undefined);
  const key = filters.map(([name, value]) =>
    wrap("FilterRule", tag("Name", name) + tag("Value", value)),
  );
  const [element, targetName] = XML_FORMS.find(([, , form]) => form === rule.form)!;
  return wrap(
    element,
    tag("Id", rule.id) +
      tag(targetName, kind === "stomp" ? `${url}${destination}` : url) +
      rule.events.map((name) => tag("Event", `s3:${name}`)).join("") +
      (key.length === 0 ? "" : wrap("Filter", wrap("S3Key", key.join("")))),
  );
}
