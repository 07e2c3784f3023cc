// Converts the attributes of a new object to columns of the index.
import { describeEncryption } from "../blob/encryption.ts";
import type { ObjectDetail } from "../index/records.ts";
import type { NewObject } from "../transaction/put-operation.ts";
import type { ObjectAttributes } from "../model/object.ts";

/** The columns that depend on attributes only. */
export type AttributeColumns = Pick<
  NewObject,
  "class" | "owner" | "tags" | "retention" | "hold" | "detail" | "vector" | "guest" | "source"
>;

/** Builds the columns and the detail of the attributes. */
export function buildAttributeColumns(attributes: ObjectAttributes): AttributeColumns {
  const detail: ObjectDetail = {};
  const { headers, metadata, websiteRedirect, acl, tags, owner, retention, vector } = attributes;
  if (headers !== undefined && Object.keys(headers).length > 0) detail.headers = headers;
  if (metadata !== undefined && Object.keys(metadata).length > 0) detail.metadata = metadata;
  if (websiteRedirect !== undefined) detail.redirect = websiteRedirect;
  if (acl !== undefined) detail.acl = acl;
  const encryption = describeEncryption(attributes.encryption);
  if (encryption !== undefined) detail.encryption = encryption;
  if (attributes.guest !== undefined) detail.guest = attributes.guest;
  if (attributes.geo !== undefined) detail.geo = attributes.geo;
  if (attributes.source !== undefined) detail.replica = true;
  return {
    class: attributes.storageClass ?? "STANDARD",
    owner: owner === undefined ? null : JSON.stringify(owner),
    tags: tags === undefined || Object.keys(tags).length === 0 ? null : JSON.stringify(tags),
    hold: attributes.legalHold ?? null,
    detail: JSON.stringify(detail),
    ...(retention === undefined ? {} : { retention }),
    ...(attributes.guest === undefined ? {} : { guest: attributes.guest }),
    ...(attributes.source === undefined ? {} : { source: attributes.source }),
    ...(vector === undefined ? {} : { vector: Buffer.from(vector).toString("base64") }),
  };
}
