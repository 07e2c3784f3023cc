// The names of condition keys ("Actions, resources, and condition keys for Amazon S3", "AWS global condition context keys").
import { malformedPolicy } from "./malformed.ts";

/** The values of a request's condition keys, names in lower case. Keys that do not apply are absent. */
export type ConditionValues = ReadonlyMap<string, readonly string[]>;

/** Keys that requests have values for. */
const ANSWERED = [
  "aws:currenttime",
  "aws:epochtime",
  "aws:federatedprovider",
  "aws:principalaccount",
  "aws:principalarn",
  "aws:principalisawsservice",
  "aws:principaltype",
  "aws:referer",
  "aws:requestedregion",
  "aws:resourceaccount",
  "aws:securetransport",
  "aws:sourceip",
  "aws:tokenissuetime",
  "aws:useragent",
  "aws:userid",
  "aws:username",
  "aws:viaawsservice",
  "s3:authtype",
  "s3:delimiter",
  "s3:if-match",
  "s3:if-none-match",
  "s3:locationconstraint",
  "s3:max-keys",
  "s3:object-lock-legal-hold",
  "s3:object-lock-mode",
  "s3:object-lock-remaining-retention-days",
  "s3:object-lock-retain-until-date",
  "s3:prefix",
  "s3:requestobjecttagkeys",
  "s3:resourceaccount",
  "s3:signatureage",
  "s3:signatureversion",
  "s3:versionid",
  "s3:x-amz-acl",
  "s3:x-amz-content-sha256",
  "s3:x-amz-copy-source",
  "s3:x-amz-grant-full-control",
  "s3:x-amz-grant-read",
  "s3:x-amz-grant-read-acp",
  "s3:x-amz-grant-write",
  "s3:x-amz-grant-write-acp",
  "s3:x-amz-metadata-directive",
  "s3:x-amz-object-ownership",
  "s3:x-amz-server-side-encryption",
  "s3:x-amz-server-side-encryption-aws-kms-key-id",
  "s3:x-amz-server-side-encryption-customer-algorithm",
  "s3:x-amz-storage-class",
  "s3:x-amz-website-redirect-location",
];
/**
 * Keys of features that callers here do not have: private cloud networks, organizations, second factors, services that act
 * for others, access points. They count as keys that do not apply, as in the cloud.
 */
const NEVER_THERE = [
  "aws:calledvia",
  "aws:calledviafirst",
  "aws:calledvialast",
  "aws:multifactorauthage",
  "aws:multifactorauthpresent",
  "aws:principalorgid",
  "aws:principalorgpaths",
  "aws:principalservicename",
  "aws:principalservicenameslist",
  "aws:resourceorgid",
  "aws:resourceorgpaths",
  "aws:sourceaccount",
  "aws:sourcearn",
  "aws:sourceidentity",
  "aws:sourceorgid",
  "aws:sourceorgpaths",
  "aws:sourcevpc",
  "aws:sourcevpcarn",
  "aws:sourcevpce",
  "aws:vpcsourceip",
  "s3:accesspointnetworkorigin",
  "s3:dataaccesspointaccount",
  "s3:dataaccesspointarn",
];
const KEYS: ReadonlySet<string> = new Set([...ANSWERED, ...NEVER_THERE]);
/**
 * Keys followed by the name of a tag. Of principals, only session keys have tags: `tenant`, `username` and `sub` of their
 * token. Buckets have no tags that policies use.
 */
const KEY_FAMILIES = [
  "s3:existingobjecttag/",
  "s3:requestobjecttag/",
  "aws:principaltag/",
  "aws:resourcetag/",
];

/**
 * A key in its canonical form: lower case except for the name of a tag, with the cloud's prefixes instead of the store's.
 * `undefined` for an unknown key.
 */
export function findConditionKey(text: string): string | undefined {
  const name = text
    .replace(/^objstore:/i, "s3:")
    .replace(/^s3:x-store-/i, "s3:x-amz-")
    .replace(/^store:/i, "aws:");
  const folded = name.toLowerCase();
  if (KEYS.has(folded)) return folded;
  const family = KEY_FAMILIES.find((start) => folded.startsWith(start));
  return family === undefined || name.length === family.length
    ? undefined
    : family + name.slice(family.length);
}

/** As `findConditionKey`, but throws MalformedPolicy for an unknown key. */
export function readConditionKey(text: string): string {
  const key = findConditionKey(text);
  if (key === undefined) throw malformedPolicy(`the condition key ${text} is unknown`);
  return key;
}
