// Replication configurations as documents: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketReplication.html
import { randomBytes } from "node:crypto";
import type {
  ReplicationDestination,
  ReplicationRule,
  ReplicationSettings,
} from "../model/replication.ts";
import { checkPart, S3Error } from "../model/s3-error.ts";
import { formatFilter } from "./lifecycle-document.ts";
import { readTags } from "./tagging-document.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "./wire/xml.ts";

const RULES_MAX = 1_000;
const ID_CHARS_MAX = 255;
const FILTER_TAGS_MAX = 10;
const PRIORITY_MAX = 2_147_483_647;
const ROLE_CHARS_MAX = 2_048;
/** AWS's only threshold. */
const THRESHOLD_MINUTES = 15;
const LOCAL_ARN = "arn:aws:s3:::";
const REMOTE_ARN = "arn:objstore:replication::";
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const REMOTE_NAME = /^[A-Za-z0-9._-]{1,80}$/;
/** Classes that stores accept of a PUT. */
const CLASSES: ReadonlySet<string> = new Set([
  "STANDARD",
  "REDUCED_REDUNDANCY",
  "STANDARD_IA",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
  "GLACIER",
  "GLACIER_IR",
  "DEEP_ARCHIVE",
]);

/** Parses a ReplicationConfiguration. Throws MalformedXML, InvalidArgument, InvalidRequest, InvalidTag or NotImplemented. */
export function parseReplication(body: Buffer): Pick<ReplicationSettings, "role" | "rules"> {
  const root = parseXml(body, "ReplicationConfiguration");
  root.allow("Role", "Rule");
  const role = root.findText("Role") ?? "";
  if (role.length > ROLE_CHARS_MAX) throw new S3Error("InvalidArgument", "Role is too long");
  const rules = root.map("Rule", readRule);
  if (rules.length === 0 || rules.length > RULES_MAX)
    throw malformedXml("it has no rules, or too many");
  if (new Set(rules.map(({ id }) => id)).size !== rules.length)
    throw new S3Error("InvalidArgument", "Rule Id must be unique");
  const newer = rules.filter(({ hasOlderForm }) => hasOlderForm !== true);
  if (newer.length !== 0 && newer.length !== rules.length)
    throw new S3Error("InvalidRequest", "Rules have either all a Filter, or all a Prefix");
  if (new Set(newer.map(({ priority }) => priority)).size !== newer.length)
    throw new S3Error("InvalidArgument", "Found duplicate priority: it must be unique");
  return { role, rules };
}

/** Formats a ReplicationConfiguration document. */
export function formatReplication({ role, rules }: ReplicationSettings): string {
  return xmlDocument(
    "ReplicationConfiguration",
    tag("Role", role) + rules.map(formatRule).join(""),
  );
}

/** The ARN of a destination. */
export function formatDestination({ remote, bucket }: ReplicationDestination): string {
  return remote === undefined ? `${LOCAL_ARN}${bucket}` : `${REMOTE_ARN}${remote}:${bucket}`;
}

function readRule(item: XmlElement): ReplicationRule {
  item.allow(
    "ID",
    "Priority",
    "Status",
    "Prefix",
    "Filter",
    "DeleteMarkerReplication",
    "ExistingObjectReplication",
    "SourceSelectionCriteria",
    "Destination",
  );
  const id = item.findText("ID") ?? "";
  if (id.length > ID_CHARS_MAX)
    throw new S3Error("InvalidArgument", "ID length should not exceed allowed limit of 255");
  const filter = item.find("Filter");
  const criteria = readCriteria(item, filter);
  const isOlder = filter === undefined;
  const markers = item.read("DeleteMarkerReplication", readSwitch);
  if (!isOlder && markers === undefined)
    throw malformedXml("a rule with a Filter must have DeleteMarkerReplication");
  if (markers === true && criteria.tags !== undefined)
    throw new S3Error(
      "InvalidRequest",
      "Delete marker replication is not supported if any Tag filter is specified.",
    );
  const destination = item.find("Destination");
  if (destination === undefined) throw malformedXml("a rule has no Destination");
  const selection = item.read("SourceSelectionCriteria", readSelection);
  return {
    id: id === "" ? randomBytes(24).toString("base64url") : id,
    priority: isOlder ? 0 : readPriority(item),
    enabled: readStatus(item),
    ...criteria,
    // In the older form, markers always follow.
    deleteMarkers: markers ?? isOlder,
    existingObjects: item.read("ExistingObjectReplication", readSwitch) ?? false,
    replicaModifications: selection?.replicaModifications ?? false,
    ...(selection?.encryptedObjects === undefined
      ? {}
      : { encryptedObjects: selection.encryptedObjects }),
    ...checkPart(["Destination"], () => readDestination(destination)),
    ...(isOlder ? { hasOlderForm: true as const } : {}),
  };
}

function readPriority(item: XmlElement): number {
  const text = item.getText("Priority").trim();
  if (!/^\d{1,10}$/.test(text) || Number(text) > PRIORITY_MAX)
    throw malformedXml("Priority is not a number", ["Priority"]);
  return Number(text);
}

function readStatus(item: XmlElement): boolean {
  const status = item.getText("Status");
  if (status !== "Enabled" && status !== "Disabled")
    throw malformedXml("Status must be Enabled or Disabled", ["Status"]);
  return status === "Enabled";
}

function readSwitch(item: XmlElement): boolean {
  item.allow("Status");
  return readStatus(item);
}

function readCriteria(
  item: XmlElement,
  filter: XmlElement | undefined,
): Pick<ReplicationRule, "prefix" | "tags"> {
  const legacy = item.findText("Prefix");
  if (filter === undefined) {
    if (legacy === undefined) throw malformedXml("a rule has neither Prefix nor Filter");
    return legacy === "" ? {} : { prefix: legacy };
  }
  if (legacy !== undefined) throw malformedXml("a rule has both Prefix and Filter");
  return checkPart(["Filter"], () => {
    filter.allow("Prefix", "Tag", "And");
    if (filter.children.length > 1)
      throw malformedXml("several criteria of a Filter must be in And");
    return filter.read("And", readFields) ?? readFields(filter);
  });
}

function readFields(item: XmlElement): Pick<ReplicationRule, "prefix" | "tags"> {
  item.allow("Prefix", "Tag");
  const prefix = item.findText("Prefix") ?? "";
  const hasTags = item.list("Tag").length > 0;
  return {
    ...(prefix === "" ? {} : { prefix }),
    ...(hasTags ? { tags: readTags(item, FILTER_TAGS_MAX) } : {}),
  };
}

function readSelection(item: XmlElement) {
  item.allow("SseKmsEncryptedObjects", "ReplicaModifications");
  return {
    encryptedObjects: item.read("SseKmsEncryptedObjects", readSwitch),
    replicaModifications: item.read("ReplicaModifications", readSwitch) ?? false,
  };
}

function readDestination(item: XmlElement): Pick<ReplicationRule, "destination" | "echo"> {
  item.allow(
    "Bucket",
    "Account",
    "StorageClass",
    "AccessControlTranslation",
    "EncryptionConfiguration",
    "ReplicationTime",
    "Metrics",
  );
  const ownership = readOwnership(item);
  const storageClass = item.findText("StorageClass");
  if (storageClass !== undefined && !CLASSES.has(storageClass))
    throw malformedXml("the StorageClass is unknown", ["StorageClass"]);
  const keyId = item.read("EncryptionConfiguration", (encryption) => {
    encryption.allow("ReplicaKmsKeyID");
    return encryption.getText("ReplicaKmsKeyID");
  });
  const metrics = item.read("Metrics", (element) => readThreshold(element, "EventThreshold"));
  const timeControl = item.read("ReplicationTime", (element) => readThreshold(element, "Time"));
  return {
    destination: {
      ...parseArn(item.getText("Bucket")),
      ...(storageClass === undefined ? {} : { storageClass }),
      ...(keyId === undefined ? {} : { keyId }),
      ...ownership,
    },
    echo: {
      ...(metrics === undefined ? {} : { metrics }),
      ...(timeControl === undefined ? {} : { timeControl }),
    },
  };
}

// Replicas with another owner need the account of their bucket to be named.
function readOwnership(item: XmlElement): Pick<ReplicationDestination, "account" | "ownsReplicas"> {
  const account = item.findText("Account")?.trim();
  if (account !== undefined && !/^\d{12}$/.test(account))
    throw malformedXml("Account must have 12 digits", ["Account"]);
  const owner = item.read("AccessControlTranslation", (element) => {
    element.allow("Owner");
    return element.getText("Owner").trim();
  });
  if (owner === undefined) return account === undefined ? {} : { account };
  if (owner !== "Destination")
    throw malformedXml("Owner must be Destination", ["AccessControlTranslation", "Owner"]);
  if (account === undefined)
    throw new S3Error(
      "InvalidRequest",
      "Account must be specified if AccessControlTranslation is specified.",
    );
  return { account, ownsReplicas: true };
}

function readThreshold(item: XmlElement, name: string): boolean {
  item.allow("Status", name);
  const minutes = item.read(name, (time) => {
    time.allow("Minutes");
    return time.getText("Minutes").trim();
  });
  if (minutes !== undefined && minutes !== String(THRESHOLD_MINUTES))
    throw malformedXml(`Minutes must be ${THRESHOLD_MINUTES}`, [name, "Minutes"]);
  return readStatus(item);
}

function parseArn(arn: string): ReplicationDestination {
  if (arn.startsWith(LOCAL_ARN)) {
    const bucket = arn.slice(LOCAL_ARN.length);
    if (BUCKET_NAME.test(bucket)) return { bucket };
  }
  if (arn.startsWith(REMOTE_ARN)) {
    const [remote = "", bucket = "", ...rest] = arn.slice(REMOTE_ARN.length).split(":");
    if (rest.length === 0 && REMOTE_NAME.test(remote) && BUCKET_NAME.test(bucket))
      return { remote, bucket };
  }
  throw new S3Error("InvalidArgument", {
    message: "Invalid bucket ARN.",
    path: ["Bucket"],
    elements: [["ArgumentValue", arn.slice(0, 256)]],
  });
}

function formatRule(rule: ReplicationRule): string {
  const { id, priority, enabled, prefix = "", tags, destination, echo } = rule;
  const criteria = {
    ...(prefix === "" ? {} : { prefix }),
    ...(tags === undefined ? {} : { tags }),
  };
  const isOlder = rule.hasOlderForm === true;
  return wrap(
    "Rule",
    tag("ID", id) +
      (isOlder ? "" : tag("Priority", priority)) +
      (isOlder ? tag("Prefix", prefix) : formatFilter(criteria)) +
      formatSwitch("Status", enabled) +
      formatSelection(rule) +
      (rule.existingObjects
        ? wrap("ExistingObjectReplication", formatSwitch("Status", true))
        : "") +
      (isOlder ? "" : wrap("DeleteMarkerReplication", formatSwitch("Status", rule.deleteMarkers))) +
      wrap("Destination", formatDestinationFields(destination, echo)),
  );
}

function formatSwitch(name: string, isOn: boolean): string {
  return tag(name, isOn ? "Enabled" : "Disabled");
}

function formatSelection({ replicaModifications, encryptedObjects }: ReplicationRule): string {
  const inner =
    (encryptedObjects === undefined
      ? ""
      : wrap("SseKmsEncryptedObjects", formatSwitch("Status", encryptedObjects))) +
    (replicaModifications ? wrap("ReplicaModifications", formatSwitch("Status", true)) : "");
  return inner === "" ? "" : wrap("SourceSelectionCriteria", inner);
}

function formatDestinationFields(
  destination: ReplicationDestination,
  { metrics, timeControl }: ReplicationRule["echo"],
): string {
  const { storageClass, keyId, account, ownsReplicas } = destination;
  const minutes = tag("Minutes", THRESHOLD_MINUTES);
  const withTime = (name: string, time: string, isOn: boolean | undefined): string =>
    isOn === undefined ? "" : wrap(name, formatSwitch("Status", isOn) + wrap(time, minutes));
  return (
    tag("Bucket", formatDestination(destination)) +
    tag("Account", account) +
    tag("StorageClass", storageClass) +
    (ownsReplicas === true ? wrap("AccessControlTranslation", tag("Owner", "Destination")) : "") +
    (keyId === undefined ? "" : wrap("EncryptionConfiguration", tag("ReplicaKmsKeyID", keyId))) +
    withTime("ReplicationTime", "Time", timeControl) +
    withTime("Metrics", "EventThreshold", metrics)
  );
}
