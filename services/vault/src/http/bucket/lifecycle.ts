// Lifecycle configurations.
import type { LifecycleFilter, LifecycleRule } from "../../store.ts";
import { S3Error } from "../../wire/error.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument } from "../../wire/xml.ts";
import type { XmlElement } from "../../wire/xml.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket } from "../context.ts";
import type { OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";

const RULES_MAX = 1_000;
const DAYS_MAX = 2_147_483_647;
const TRANSITION_CLASSES: ReadonlySet<string> = new Set([
  "STANDARD_IA",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
  "GLACIER",
  "GLACIER_IR",
  "DEEP_ARCHIVE",
  // The tier of this store.
  "COLD",
]);

/** GetBucketLifecycle */
export const getBucketLifecycle: OperationHandler = (context) => {
  const { lifecycle } = getBucket(context).settings;
  if (lifecycle === undefined) throw new S3Error("NoSuchLifecycleConfiguration");
  const rules = lifecycle.rules.map(formatRule);
  return answerXml(xmlDocument("LifecycleConfiguration", rules.join("")), [
    ["x-amz-transition-default-minimum-object-size", "all_storage_classes_128K"],
  ]);
};

/** PutBucketLifecycle */
export const putBucketLifecycle: OperationHandler = async (context) => {
  const root = parseXml(
    await receiveDocument(context.request, context.payload),
    "LifecycleConfiguration",
  );
  root.allow("Rule");
  const rules = root.list("Rule").map(readRule);
  if (rules.length === 0 || rules.length > RULES_MAX)
    throw malformedXml("it has no rules, or too many");
  if (new Set(rules.map((rule) => rule.id)).size !== rules.length) {
    throw new S3Error(
      "InvalidArgument",
      "Rule ID must be unique. Found same ID for more than one rule",
    );
  }
  await context.api.store.setBucketSetting(context.bucketName, "lifecycle", { rules });
  return answerEmpty(200);
};

/** DeleteBucketLifecycle */
export const deleteBucketLifecycle: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "lifecycle");
  return answerEmpty();
};

function readRule(item: XmlElement, index: number): LifecycleRule {
  item.allow(
    "ID",
    "Status",
    "Filter",
    "Prefix",
    "Expiration",
    "NoncurrentVersionExpiration",
    "AbortIncompleteMultipartUpload",
    "Transition",
    "NoncurrentVersionTransition",
  );
  if (item.list("NoncurrentVersionTransition").length > 0) {
    throw new S3Error("NotImplemented", "NoncurrentVersionTransition is not implemented.");
  }
  const id = item.findText("ID") ?? "";
  if (id.length > 255)
    throw new S3Error("InvalidArgument", "ID length should not exceed allowed limit of 255");
  const status = item.getText("Status");
  if (status !== "Enabled" && status !== "Disabled")
    throw malformedXml("Status is neither Enabled nor Disabled");
  const rule: LifecycleRule = {
    id: id === "" ? `rule-${index + 1}` : id,
    enabled: status === "Enabled",
    filter: readFilter(item),
  };
  if (item.find("Filter") === undefined) rule.hasOlderForm = true;
  const expiration = item.find("Expiration");
  if (expiration !== undefined) rule.expiration = readExpiration(expiration);
  const noncurrent = item.find("NoncurrentVersionExpiration");
  if (noncurrent !== undefined) {
    noncurrent.allow("NoncurrentDays", "NewerNoncurrentVersions");
    rule.noncurrentVersionExpiration = { days: readDays(noncurrent, "NoncurrentDays") };
    const kept = noncurrent.findText("NewerNoncurrentVersions");
    if (kept !== undefined)
      rule.noncurrentVersionExpiration.newerVersionsKept = readNumber(
        kept,
        "NewerNoncurrentVersions",
        1,
        100,
      );
  }
  const abort = item.find("AbortIncompleteMultipartUpload");
  if (abort !== undefined) {
    if (rule.filter.tags !== undefined) {
      throw new S3Error(
        "InvalidRequest",
        "AbortIncompleteMultipartUpload cannot be specified with Tags.",
      );
    }
    rule.abortIncompleteUpload = { days: readDays(abort, "DaysAfterInitiation") };
  }
  const transitions = item.list("Transition").map((child) => ({
    days: readNumber(child.getText("Days"), "Days", 0, DAYS_MAX),
    storageClass: readStorageClass(child.getText("StorageClass")),
  }));
  if (transitions.length > 0) rule.transitions = transitions;
  if (!expiration && !noncurrent && !abort && transitions.length === 0) {
    throw new S3Error("InvalidRequest", "At least one action needs to be specified in a rule");
  }
  return rule;
}

function readFilter(item: XmlElement): LifecycleFilter {
  const legacy = item.findText("Prefix");
  const filter = item.find("Filter");
  if (legacy !== undefined && filter !== undefined)
    throw malformedXml("a rule has both Prefix and Filter");
  if (filter === undefined) {
    if (legacy === undefined) throw malformedXml("a rule has neither Prefix nor Filter");
    return legacy === "" ? {} : { prefix: legacy };
  }
  filter.allow("Prefix", "Tag", "And", "ObjectSizeGreaterThan", "ObjectSizeLessThan");
  if (filter.children.length > 1) throw malformedXml("several criteria of a Filter stand in And");
  return readCriteria(filter.find("And") ?? filter);
}

function readCriteria(item: XmlElement): LifecycleFilter {
  item.allow("Prefix", "Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan");
  const criteria: LifecycleFilter = {};
  const prefix = item.findText("Prefix");
  if (prefix !== undefined && prefix !== "") criteria.prefix = prefix;
  const tags = item
    .list("Tag")
    .map((child) => [child.getText("Key"), child.getText("Value")] as const);
  if (tags.length > 0) {
    criteria.tags = Object.fromEntries(tags);
    if (Object.keys(criteria.tags).length !== tags.length) {
      throw new S3Error("InvalidRequest", "Duplicate Tag Keys are not allowed.");
    }
  }
  const above = item.findText("ObjectSizeGreaterThan");
  const below = item.findText("ObjectSizeLessThan");
  if (above !== undefined)
    criteria.sizeGreaterThan = readNumber(
      above,
      "ObjectSizeGreaterThan",
      0,
      Number.MAX_SAFE_INTEGER,
    );
  if (below !== undefined)
    criteria.sizeLessThan = readNumber(below, "ObjectSizeLessThan", 1, Number.MAX_SAFE_INTEGER);
  return criteria;
}

function readExpiration(item: XmlElement): NonNullable<LifecycleRule["expiration"]> {
  item.allow("Days", "Date", "ExpiredObjectDeleteMarker");
  if (item.children.length !== 1)
    throw malformedXml("Expiration has exactly one of Days, Date and ExpiredObjectDeleteMarker");
  if (item.find("Days") !== undefined) return { days: readDays(item, "Days") };
  const date = item.findText("Date");
  if (date === undefined) {
    if (item.getText("ExpiredObjectDeleteMarker") !== "true")
      throw malformedXml("ExpiredObjectDeleteMarker is not true");
    return { expiredObjectDeleteMarker: true };
  }
  const atMs = Date.parse(date);
  if (Number.isNaN(atMs) || atMs % 86_400_000 !== 0) {
    throw new S3Error("InvalidArgument", "'Date' must be at midnight GMT");
  }
  return { atMs };
}

function readStorageClass(text: string): string {
  if (TRANSITION_CLASSES.has(text)) return text;
  throw malformedXml("StorageClass is none that objects can be moved to");
}

function readDays(item: XmlElement, name: string): number {
  return readNumber(item.getText(name), name, 1, DAYS_MAX);
}

function readNumber(text: string, name: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text.trim()) || value < min || value > max) {
    throw new S3Error("InvalidArgument", `'${name}' must be an integer of at least ${min}`);
  }
  return value;
}

function formatRule(rule: LifecycleRule): string {
  const {
    expiration,
    noncurrentVersionExpiration: noncurrent,
    abortIncompleteUpload: abort,
  } = rule;
  let inner =
    tag("ID", rule.id) +
    (rule.hasOlderForm === true
      ? tag("Prefix", rule.filter.prefix ?? "")
      : formatFilter(rule.filter)) +
    tag("Status", rule.enabled ? "Enabled" : "Disabled");
  if (expiration !== undefined) {
    if ("days" in expiration) inner += wrap("Expiration", tag("Days", expiration.days));
    else if ("atMs" in expiration)
      inner += wrap("Expiration", tag("Date", new Date(expiration.atMs).toISOString()));
    else inner += wrap("Expiration", tag("ExpiredObjectDeleteMarker", true));
  }
  for (const transition of rule.transitions ?? []) {
    inner += wrap(
      "Transition",
      tag("Days", transition.days) + tag("StorageClass", transition.storageClass),
    );
  }
  if (noncurrent !== undefined) {
    inner += wrap(
      "NoncurrentVersionExpiration",
      tag("NoncurrentDays", noncurrent.days) +
        tag("NewerNoncurrentVersions", noncurrent.newerVersionsKept),
    );
  }
  if (abort !== undefined)
    inner += wrap("AbortIncompleteMultipartUpload", tag("DaysAfterInitiation", abort.days));
  return wrap("Rule", inner);
}

function formatFilter(filter: LifecycleFilter): string {
  const parts = [
    ...(filter.prefix === undefined ? [] : [tag("Prefix", filter.prefix)]),
    ...Object.entries(filter.tags ?? {}).map(([key, value]) =>
      wrap("Tag", tag("Key", key) + tag("Value", value)),
    ),
    ...(filter.sizeGreaterThan === undefined
      ? []
      : [tag("ObjectSizeGreaterThan", filter.sizeGreaterThan)]),
    ...(filter.sizeLessThan === undefined ? [] : [tag("ObjectSizeLessThan", filter.sizeLessThan)]),
  ];
  if (parts.length === 0) return wrap("Filter", tag("Prefix", ""));
  return wrap("Filter", parts.length === 1 ? parts[0]! : wrap("And", parts.join("")));
}
