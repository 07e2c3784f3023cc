// Access control lists: canned ACLs, validation, and decisions.
import type { Acl, AclGrant, AclPermission } from "../model/acl.ts";
import { S3Error } from "../model/s3-error.ts";

/** The groups that grants may name. */
const ACL_GROUPS = {
  allUsers: "http://acs.amazonaws.com/groups/global/AllUsers",
  authenticatedUsers: "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
  logDelivery: "http://acs.amazonaws.com/groups/s3/LogDelivery",
} as const;

/** An owner as ACLs name it. */
export interface AclOwner {
  readonly id: string;
  readonly displayName: string;
}

const GRANTS_MAX = 100;

/** Names of canned ACLs. */
const CANNED_ACLS = [
  "private",
  "public-read",
  "public-read-write",
  "authenticated-read",
  "bucket-owner-read",
  "bucket-owner-full-control",
  "aws-exec-read",
  "log-delivery-write",
] as const;

/** Expands a canned ACL. Throws InvalidArgument for an unknown name. */
export function expandCannedAcl(name: string, owner: AclOwner): Acl {
  const own: AclGrant = { grantee: { kind: "user", ...owner }, permission: "FULL_CONTROL" };
  const group = (uri: string, permission: AclPermission): AclGrant => ({
    grantee: { kind: "group", uri },
    permission,
  });
  switch (name as (typeof CANNED_ACLS)[number]) {
    // Buckets and objects have the same owner, so grants to the owner of the bucket add nothing.
    case "private":
    case "bucket-owner-read":
    case "bucket-owner-full-control":
    case "aws-exec-read":
      return { grants: [own] };
    case "public-read":
      return { grants: [own, group(ACL_GROUPS.allUsers, "READ")] };
    case "public-read-write":
      return {
        grants: [own, group(ACL_GROUPS.allUsers, "READ"), group(ACL_GROUPS.allUsers, "WRITE")],
      };
    case "authenticated-read":
      return { grants: [own, group(ACL_GROUPS.authenticatedUsers, "READ")] };
    case "log-delivery-write":
      return {
        grants: [
          own,
          group(ACL_GROUPS.logDelivery, "WRITE"),
          group(ACL_GROUPS.logDelivery, "READ_ACP"),
        ],
      };
    default:
      throw new S3Error(
        "InvalidArgument",
        `The canned ACL ${JSON.stringify(name.slice(0, 64))} is not known.`,
      );
  }
}

/** Validates an ACL: its size, its groups, and that users are the owner or known to `isUser`. Throws InvalidArgument. */
export function checkAcl(acl: Acl, owner: AclOwner, isUser: (name: string) => boolean): Acl {
  if (acl.grants.length > GRANTS_MAX)
    throw new S3Error("InvalidArgument", "An ACL has at most 100 grants.");
  for (const { grantee } of acl.grants) {
    if (grantee.kind === "group" && !Object.values(ACL_GROUPS).some((uri) => uri === grantee.uri)) {
      throw invalidGrantee("Invalid group uri", "Group/URI", grantee.uri);
    }
    if (grantee.kind === "user" && grantee.id !== owner.id && !isUser(grantee.id)) {
      throw invalidGrantee("Invalid id", "CanonicalUser/ID", grantee.id);
    }
  }
  return acl;
}

function invalidGrantee(message: string, name: string, value: string): S3Error {
  return new S3Error("InvalidArgument", {
    message,
    elements: [
      ["ArgumentName", name],
      ["ArgumentValue", value.slice(0, 256)],
    ],
  });
}

/** True if an ACL grants anything to everyone, or to everyone with an access key. */
export function isPublicAcl(acl: Acl): boolean {
  return acl.grants.some(
    ({ grantee }) => grantee.kind === "group" && grantee.uri !== ACL_GROUPS.logDelivery,
  );
}

/** True if an ACL grants nothing to anyone but the owner. */
export function isOwnersAlone(acl: Acl, owner: AclOwner): boolean {
  return acl.grants.every(({ grantee }) => grantee.kind === "user" && grantee.id === owner.id);
}

/** True if an ACL grants a permission to a caller; `id` is undefined for anonymous callers. */
export function isGranted(acl: Acl, id: string | undefined, wanted: AclPermission): boolean {
  return acl.grants.some(({ grantee, permission }) => {
    if (permission !== wanted && permission !== "FULL_CONTROL") return false;
    if (grantee.kind === "user") return grantee.id === id;
    if (grantee.uri === ACL_GROUPS.allUsers) return true;
    return grantee.uri === ACL_GROUPS.authenticatedUsers && id !== undefined;
  });
}
