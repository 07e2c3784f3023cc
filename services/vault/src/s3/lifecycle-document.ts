// Lifecycle configurations as documents: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html
import { randomBytes } from "node:crypto";
import type { LifecycleFilter, LifecycleRule } from "../model/lifecycle.ts";
import { checkPart, S3Error } from "../model/s3-error.ts";
import { checkLifecycleRule } from "./lifecycle-check.ts";
import { readTags } from "./tagging-document.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "./wire/xml.ts";

const RULES_MAX = 1_000;
const DAYS_MAX = 2_147_483_647;
const DAY_MS = 86_400_000;
const FILTER_TAGS_MAX = 100;
const NEWER_VERSIONS_MAX = 100;
const ID_CHARS_MAX = 255;
/** Any class that a remote may have; the bucket's own is COLD. */
const CLASS_NAME = /^[A-Z][A-Z0-9_]{0,31}$/;
/** Classes with a minimum age of objects ("Constraints and considerations for transitions"). */
const DAYS_MIN: Readonly<Record<string, number>> = { STANDARD_IA: 30, ONEZONE_IA: 30 };

type Expiration = NonNullable<LifecycleRule["expiration"]>;
type Transition = NonNullable<LifecycleRule["transitions"]>[number];
type NoncurrentTransition = NonNullable<LifecycleRule["noncurrentTransitions"]>[number];

/** Parses a LifecycleConfiguration. Throws MalformedXML, InvalidArgument, InvalidRequest, InvalidTag. */
export function parseLifecycle(body: Buffer): LifecycleRule[] {
  const root = parseXml(body, "LifecycleConfiguration");
  root.allow("Rule");
  const rules = root.map("Rule", readRule);
  if (rules.length === 0 || rules.length > RULES_MAX)
    throw malformedXml("it has no rules, or too many");
  if (new Set(rules.map((rule) => rule.id)).size !== rules.length) {
    throw new S3Error(
      "InvalidArgument",
      "Rule ID must be unique. Found same ID for more than one rule",
    );
  }
  return rules;
}

/** Formats a LifecycleConfiguration document. */
export function formatLifecycle(rules: readonly LifecycleRule[]): string {
  return xmlDocument("LifecycleConfiguration", rules.map(formatRule).join(""));
}

function readRule(item: XmlElement): LifecycleRule {
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
  const id = item.findText("ID") ?? "";
  if (id.length > ID_CHARS_MAX)
    throw new S3Error("InvalidArgument", "ID length should not exceed allowed limit of 255");
  const status = item.getText("Status");
  if (status !== "Enabled" && status !== "Disabled")
    throw malformedXml("Status must be Enabled or Disabled", ["Status"]);
  const rule: LifecycleRule = {
    id: id === "" ? randomBytes(24).toString("base64url") : id,
    enabled: status === "Enabled",
    filter: readFilter(item),
    ...(item.find("Filter") === undefined ? { hasOlderForm: true } : {}),
    ...readActions(item),
  };
  checkLifecycleRule(rule);
  return rule;
}

function readActions(item: XmlElement): Partial<LifecycleRule> {
  const expiration = item.read("Expiration", readExpiration);
  const transitions = item.map("Transition", readTransition);
  const noncurrentTransitions = item.map("NoncurrentVersionTransition", readNoncurrentTransition);
  const noncurrentVersionExpiration = item.read("NoncurrentVersionExpiration", (noncurrent) => {
    noncurrent.allow("NoncurrentDays", "NewerNoncurrentVersions");
    return { days: readDays(noncurrent, "NoncurrentDays"), ...readNewerVersions(noncurrent) };
  });
  const abortIncompleteUpload = item.read("AbortIncompleteMultipartUpload", (abort) => {
    abort.allow("DaysAfterInitiation");
    return { days: readDays(abort, "DaysAfterInitiation") };
  });
  return {
    ...(expiration === undefined ? {} : { expiration }),
    ...(noncurrentVersionExpiration === undefined ? {} : { noncurrentVersionExpiration }),
    ...(abortIncompleteUpload === undefined ? {} : { abortIncompleteUpload }),
    ...(transitions.length === 0 ? {} : { transitions }),
    ...(noncurrentTransitions.length === 0 ? {} : { noncurrentTransitions }),
  };
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
  return checkPart(["Filter"], () => {
    filter.allow("Prefix", "Tag", "And", "ObjectSizeGreaterThan", "ObjectSizeLessThan");
    if (filter.children.length > 1)
      throw malformedXml("several criteria of a Filter must be in And");
    return filter.read("And", readCriteria) ?? readCriteria(filter);
  });
}

function readCriteria(item: XmlElement): LifecycleFilter {
  item.allow("Prefix", "Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan");
  const criteria: LifecycleFilter = {};
  const prefix = item.findText("Prefix");
  if (prefix !== undefined && prefix !== "") criteria.prefix = prefix;
  const names = item.list("Tag").map((child) => child.getText("Key"));
  if (new Set(names).size !== names.length)
    throw new S3Error("InvalidRequest", "Duplicate Tag Keys are not allowed.");
  if (names.length > 0) criteria.tags = readTags(item, FILTER_TAGS_MAX);
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
  if ((criteria.sizeLessThan ?? Infinity) <= (criteria.sizeGreaterThan ?? -1)) {
    throw new S3Error(
      "InvalidRequest",
      "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.",
    );
  }
  return criteria;
}

function readExpiration(item: XmlElement): Expiration {
  item.allow("Days", "Date", "ExpiredObjectDeleteMarker");
  const marker = item.findText("ExpiredObjectDeleteMarker");
  if (marker !== undefined && marker !== "true" && marker !== "false")
    throw malformedXml("ExpiredObjectDeleteMarker must be true or false");
  // Some clients send elements for actions that they do not want.
  const named = item.children.length - (marker === "false" ? 1 : 0);
  if (named > 1 || item.children.length === 0)
    throw malformedXml(
      "Expiration must have exactly one of Days, Date and ExpiredObjectDeleteMarker",
    );
  if (item.find("Days") !== undefined) return { days: readDays(item, "Days") };
  const date = item.findText("Date");
  if (date !== undefined) return { atMs: readDate(date) };
  return { expiredObjectDeleteMarker: marker === "true" };
}

function readTransition(item: XmlElement): Transition {
  item.allow("Days", "Date", "StorageClass");
  const storageClass = readStorageClass(item);
  const date = item.findText("Date");
  if (date === undefined) {
    const days = readNumber(item.getText("Days"), "Days", 0, DAYS_MAX);
    return { days: checkDaysMin(days, "Days", storageClass), storageClass };
  }
  if (item.find("Days") !== undefined) throw malformedXml("Transition has either Days or Date");
  return { atMs: readDate(date), storageClass };
}

function readNoncurrentTransition(item: XmlElement): NoncurrentTransition {
  item.allow("NoncurrentDays", "NewerNoncurrentVersions", "StorageClass");
  const storageClass = readStorageClass(item);
  const days = readNumber(item.getText("NoncurrentDays"), "NoncurrentDays", 0, DAYS_MAX);
  checkDaysMin(days, "NoncurrentDays", storageClass);
  return { days, storageClass, ...readNewerVersions(item) };
}

function readStorageClass(item: XmlElement): string {
  const text = item.getText("StorageClass");
  if (CLASS_NAME.test(text) && text !== "STANDARD" && text !== "REDUCED_REDUNDANCY") return text;
  throw malformedXml("objects cannot be moved to this StorageClass");
}

function checkDaysMin(days: number, name: string, storageClass: string): number {
  const min = DAYS_MIN[storageClass] ?? 0;
  if (days >= min) return days;
  throw new S3Error(
    "InvalidArgument",
    `'${name}' in Transition action must be greater than or equal to ${min} for storageClass '${storageClass}'`,
  );
}

function readNewerVersions(item: XmlElement): { newerVersionsKept?: number } {
  const name = "NewerNoncurrentVersions";
  const kept = item.findText(name);
  return kept === undefined
    ? {}
    : { newerVersionsKept: readNumber(kept, name, 1, NEWER_VERSIONS_MAX) };
}

function readDate(text: string): number {
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs) || atMs % DAY_MS !== 0) {
    throw new S3Error("InvalidArgument", {
      message: "'Date' must be at midnight GMT",
      path: ["Date"],
    });
  }
  return atMs;
}

function readDays(item: XmlElement, name: string): number {
  return readNumber(item.getText(name), name, 1, DAYS_MAX);
}

function readNumber(text: string, name: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text.trim()) || value < min || value > max) {
    throw new S3Error("InvalidArgument", {
      message: `'${name}' must be an integer of at least ${min}`,
      path: [name],
    });
  }
  return value;
}

function formatRule(rule: LifecycleRule): string {
  const { expiration, noncurrentVersionExpiration, abortIncompleteUpload: abort } = rule;
  let inner =
    tag("ID", rule.id) +
    (rule.hasOlderForm === true
      ? tag("Prefix", rule.filter.prefix ?? "")
      : formatFilter(rule.filter)) +
    tag("Status", rule.enabled ? "Enabled" : "Disabled");
  if (expiration !== undefined) inner += wrap("Expiration", formatExpiration(expiration));
  for (const transition of rule.transitions ?? []) {
    const storageClass = tag("StorageClass", transition.storageClass);
    inner += wrap("Transition", formatTime(transition) + storageClass);
  }
  for (const transition of rule.noncurrentTransitions ?? []) {
    const storageClass = tag("StorageClass", transition.storageClass);
    inner += wrap("NoncurrentVersionTransition", formatNoncurrent(transition) + storageClass);
  }
  if (noncurrentVersionExpiration !== undefined)
    inner += wrap("NoncurrentVersionExpiration", formatNoncurrent(noncurrentVersionExpiration));
  if (abort !== undefined)
    inner += wrap("AbortIncompleteMultipartUpload", tag("DaysAfterInitiation", abort.days));
  return wrap("Rule", inner);
}

function formatExpiration(expiration: Expiration): string {
  if ("expiredObjectDeleteMarker" in expiration)
    return tag("ExpiredObjectDeleteMarker", expiration.expiredObjectDeleteMarker);
  return formatTime(expiration);
}

function formatTime(time: { days: number } | { atMs: number }): string {
  return "days" in time ? tag("Days", time.days) : tag("Date", new Date(time.atMs).toISOString());
}

function formatNoncurrent(action: { days: number; newerVersionsKept?: number }): string {
  return (
    tag("NoncurrentDays", action.days) + tag("NewerNoncurrentVersions", action.newerVersionsKept)
  );
}

/** Formats a Filter element. */
export function formatFilter(filter: LifecycleFilter): string {
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
