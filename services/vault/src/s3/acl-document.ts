// ACLs in headers and documents.
import { checkAcl, expandCannedAcl, isOwnersAlone, isPublicAcl } from "../access/acl.ts";
import { readOwnership, readPublicAccessBlock } from "../access/public-access.ts";
import type { Acl, AclGrant, AclGrantee, AclPermission } from "../model/acl.ts";
import type { Bucket, Owner } from "../model/bucket.ts";
import { S3Error } from "../model/s3-error.ts";
import { getBucket, getOwner, type ObjectApi, type OperationContext } from "./context.ts";
import { receiveDocument } from "./payload.ts";
import type { RequestFields } from "./wire/fields.ts";
import { parseXml, tag, wrap, xmlDocument, type XmlElement } from "./wire/xml.ts";

const GRANT_FIELDS: readonly (readonly [string, AclPermission])[] = [
  ["x-amz-grant-read", "READ"],
  ["x-amz-grant-write", "WRITE"],
  ["x-amz-grant-read-acp", "READ_ACP"],
  ["x-amz-grant-write-acp", "WRITE_ACP"],
  ["x-amz-grant-full-control", "FULL_CONTROL"],
];
const PERMISSIONS: ReadonlySet<string> = new Set(GRANT_FIELDS.map(([, permission]) => permission));

/**
 * The ACL that headers request; `undefined` without one. Throws AccessControlListNotSupported if the bucket has disabled
 * ACLs, AccessDenied if it blocks public ones.
 */
export function readAclFields(
  fields: RequestFields,
  bucket: Bucket | undefined,
  api: ObjectApi,
): Acl | undefined {
  const owner = getOwner(api);
  const canned = fields.getFilled("x-amz-acl");
  const grants = GRANT_FIELDS.flatMap(([name, permission]) =>
    readGrantees(fields.getFilled(name), owner).map((grantee) => ({ grantee, permission })),
  );
  if (canned !== undefined && grants.length > 0) {
    throw new S3Error(
      "InvalidRequest",
      "Specifying both Canned ACLs and Header Grants is not allowed",
    );
  }
  if (canned === undefined && grants.length === 0) return undefined;
  if (canned !== undefined) {
    const acl = expandCannedAcl(canned, owner);
    return admitAcl(acl, bucket, canned === "bucket-owner-full-control");
  }
  const acl = checkAcl({ grants }, owner, api.isUser);
  return admitAcl(acl, bucket, isFullControl(acl, owner));
}

// Buckets without ACLs accept the ACL that all of their objects have anyway.
function isFullControl({ grants }: Acl, owner: Owner): boolean {
  return (
    isOwnersAlone({ grants }, owner) && grants.some((one) => one.permission === "FULL_CONTROL")
  );
}

/** The ACL of a PUT, in its headers or its document but not in both. The bucket must have ACLs enabled. */
export async function receiveAcl(context: OperationContext): Promise<Acl> {
  const bucket = getBucket(context);
  if (readOwnership(bucket) === "BucketOwnerEnforced")
    throw new S3Error("AccessControlListNotSupported");
  const body = await receiveDocument(context);
  const byFields = readAclFields(context.fields, bucket, context.api);
  if (byFields !== undefined && body.length > 0) throw new S3Error("UnexpectedContent");
  if (byFields === undefined && body.length === 0) {
    throw new S3Error("MissingSecurityHeader", { elements: [["MissingHeaderName", "x-amz-acl"]] });
  }
  return byFields ?? parseAcl(body, bucket, context.api);
}

// Parses an AccessControlPolicy document. Throws MalformedACLError, or AccessDenied if it names another owner.
function parseAcl(body: Buffer, bucket: Bucket, api: ObjectApi): Acl {
  const owner = getOwner(api);
  let root: XmlElement;
  let grants: AclGrant[];
  let ownerId: string | undefined;
  try {
    root = parseXml(body, "AccessControlPolicy");
    grants = (root.find("AccessControlList")?.list("Grant") ?? []).map((item) =>
      readGrant(item, owner),
    );
    ownerId = root.find("Owner")?.findText("ID");
  } catch (error) {
    if (error instanceof S3Error && error.code === "MalformedXML")
      throw new S3Error("MalformedACLError", error.message);
    throw error;
  }
  if (root.find("AccessControlList") === undefined) throw new S3Error("MalformedACLError");
  if (ownerId !== undefined && ownerId !== owner.id) throw new S3Error("AccessDenied");
  return admitAcl(checkAcl({ grants }, owner, api.isUser), bucket, false);
}

/** Formats an AccessControlPolicy document: full control of the owner if no ACL was put, or if ACLs are disabled. */
export function formatAcl(kept: Acl | undefined, owner: Owner, bucket: Bucket): string {
  const isEnforced = readOwnership(bucket) === "BucketOwnerEnforced";
  const acl = (isEnforced ? undefined : kept) ?? expandCannedAcl("private", owner);
  const grants = acl.grants.map(({ grantee, permission }) => {
    const inner =
      grantee.kind === "group"
        ? tag("URI", grantee.uri)
        : tag("ID", grantee.id) + tag("DisplayName", grantee.displayName);
    const type = grantee.kind === "group" ? "Group" : "CanonicalUser";
    return wrap(
      "Grant",
      `<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}">${inner}</Grantee>${tag("Permission", permission)}`,
    );
  });
  return xmlDocument(
    "AccessControlPolicy",
    wrap("Owner", tag("ID", owner.id) + tag("DisplayName", owner.displayName)) +
      wrap("AccessControlList", grants.join("")),
  );
}

function admitAcl(acl: Acl, bucket: Bucket | undefined, isHarmless: boolean): Acl {
  if (bucket === undefined) return acl;
  if (readOwnership(bucket) === "BucketOwnerEnforced" && !isHarmless) {
    throw new S3Error("AccessControlListNotSupported");
  }
  if (readPublicAccessBlock(bucket).blockPublicAcls && isPublicAcl(acl))
    throw new S3Error("AccessDenied");
  return acl;
}

function readGrantees(text: string | undefined, owner: Owner): AclGrantee[] {
  if (text === undefined) return [];
  return text.split(",").map((item): AclGrantee => {
    const match = /^\s*(id|uri|emailAddress)\s*=\s*"?([^"]*?)"?\s*$/i.exec(item);
    const kind = match?.[1]?.toLowerCase();
    if (kind === "id") return nameUser(match![2]!, owner);
    if (kind === "uri") return { kind: "group", uri: match![2]! };
    if (kind === "emailaddress") throw new S3Error("UnresolvableGrantByEmailAddress");
    throw new S3Error("InvalidArgument", "Argument format not recognized");
  });
}

function readGrant(item: XmlElement, owner: Owner): AclGrant {
  const grantee = item.find("Grantee");
  const permission = item.getText("Permission");
  if (grantee === undefined || !PERMISSIONS.has(permission)) throw new S3Error("MalformedACLError");
  const uri = grantee.findText("URI");
  const id = grantee.findText("ID");
  if (grantee.find("EmailAddress") !== undefined) {
    throw new S3Error("UnresolvableGrantByEmailAddress");
  }
  if ((uri === undefined) === (id === undefined)) throw new S3Error("MalformedACLError");
  return {
    grantee: uri === undefined ? nameUser(id!, owner) : { kind: "group", uri },
    permission: permission as AclPermission,
  };
}

// The ids of users are their names.
function nameUser(id: string, owner: Owner): AclGrantee {
  return { kind: "user", id, displayName: id === owner.id ? owner.displayName : id };
}
