// The headers with which a version is sent: everything that a reader of its replica may ask for.
import { expandCannedAcl } from "../access/acl.ts";
import type { Acl, AclPermission } from "../model/acl.ts";
import type { Owner } from "../model/bucket.ts";
import type { ObjectInfo } from "../model/object.ts";
import type { ReplicationDestination } from "../model/replication.ts";
import { listContentFields } from "../s3/object/object-headers.ts";
import { formatTagQuery } from "../s3/tagging-document.ts";

/** Classes that any store accepts of a PUT; the others are those of this store's remotes. */
const CLASSES: ReadonlySet<string> = new Set([
  "REDUCED_REDUNDANCY",
  "STANDARD_IA",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
  "GLACIER_IR",
]);
const CANNED = ["private", "public-read", "public-read-write", "authenticated-read"] as const;
const GRANT_FIELDS: Readonly<Record<AclPermission, string>> = {
  READ: "x-amz-grant-read",
  WRITE: "x-amz-grant-write",
  READ_ACP: "x-amz-grant-read-acp",
  WRITE_ACP: "x-amz-grant-write-acp",
  FULL_CONTROL: "x-amz-grant-full-control",
};

/** The headers of a PUT of an object, without those of its body. */
export function listObjectFields(
  object: ObjectInfo,
  { storageClass, keyId, ownsReplicas }: ReplicationDestination,
  owner: Owner,
  nowMs: number,
): Record<string, string> {
  const fields: Record<string, string> = Object.fromEntries(listContentFields(object));
  const tagging = formatTagQuery(object.tags);
  if (tagging !== "") fields["x-amz-tagging"] = tagging;
  const { acl, retention, legalHold, encryption } = object;
  if (acl !== undefined && ownsReplicas !== true) Object.assign(fields, listAclFields(acl, owner));
  const wanted = storageClass ?? (CLASSES.has(object.storageClass) ? object.storageClass : "");
  if (wanted !== "" && wanted !== "STANDARD") fields["x-amz-storage-class"] = wanted;
  // One that has ended protects nothing, and would be refused.
  if (retention !== undefined && retention.untilMs > nowMs) {
    fields["x-amz-object-lock-mode"] = retention.mode;
    fields["x-amz-object-lock-retain-until-date"] = new Date(retention.untilMs).toISOString();
  }
  if (legalHold !== undefined) fields["x-amz-object-lock-legal-hold"] = legalHold ? "ON" : "OFF";
  if (keyId !== undefined) {
    fields["x-amz-server-side-encryption"] = "aws:kms";
    fields["x-amz-server-side-encryption-aws-kms-key-id"] = keyId;
  } else if (encryption !== undefined) fields["x-amz-server-side-encryption"] = "AES256";
  return fields;
}

/** The headers of an ACL: its canned name if it has one, for owners have other ids elsewhere. */
export function listAclFields(acl: Acl, owner: Owner): Record<string, string> {
  const text = JSON.stringify(acl.grants.map(nameGrant).sort());
  for (const name of CANNED) {
    const grants = expandCannedAcl(name, owner).grants.map(nameGrant).sort();
    if (JSON.stringify(grants) === text) return { "x-amz-acl": name };
  }
  const fields: Record<string, string> = {};
  for (const { grantee, permission } of acl.grants) {
    const name = GRANT_FIELDS[permission];
    const one = grantee.kind === "group" ? `uri="${grantee.uri}"` : `id="${grantee.id}"`;
    fields[name] = fields[name] === undefined ? one : `${fields[name]}, ${one}`;
  }
  return fields;
}

function nameGrant({ grantee, permission }: Acl["grants"][number]): string {
  return `${permission} ${grantee.kind === "group" ? grantee.uri : grantee.id}`;
}
