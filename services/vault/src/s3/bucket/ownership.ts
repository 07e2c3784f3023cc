// Ownership controls.
import { isOwnersAlone } from "../../access/acl.ts";
import type { ObjectOwnership } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { getBucket, getOwner } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument } from "../wire/xml.ts";
import { defineSetting } from "./setting.ts";

const VALUES: ReadonlySet<string> = new Set([
  "BucketOwnerEnforced",
  "BucketOwnerPreferred",
  "ObjectWriter",
]);

/** Parses an ownership. Throws InvalidArgument for an unknown one. */
export function checkOwnership(text: string): ObjectOwnership {
  if (!VALUES.has(text))
    throw new S3Error("InvalidArgument", "Invalid x-amz-object-ownership header");
  return text as ObjectOwnership;
}

/** The operations of the ownership controls. */
export const ownershipSetting = defineSetting({
  kind: "ownership",
  missing: "OwnershipControlsNotFoundError",
  receive: async (context) => {
    const body = await receiveDocument(context);
    const root = parseXml(body, "OwnershipControls");
    root.allow("Rule");
    const rules = root.list("Rule");
    for (const rule of rules) rule.allow("ObjectOwnership");
    const text = rules[0]?.getText("ObjectOwnership") ?? "";
    if (rules.length !== 1 || !VALUES.has(text))
      throw malformedXml("it must have exactly one known rule");
    const acl = getBucket(context).settings.acl;
    const isShared = acl !== undefined && !isOwnersAlone(acl, getOwner(context.api));
    if (text === "BucketOwnerEnforced" && isShared) {
      throw new S3Error("InvalidBucketAclWithObjectOwnership");
    }
    return { objectOwnership: text as ObjectOwnership };
  },
  answer: ({ objectOwnership }) =>
    answerXml(
      xmlDocument("OwnershipControls", wrap("Rule", tag("ObjectOwnership", objectOwnership))),
    ),
});
