// Tags in headers and documents.
import { checkPart, S3Error } from "../model/s3-error.ts";
import { encodeUri, parseQuery, type QueryPair } from "./sigv4/index.ts";
import { decodeFieldText } from "./wire/fields.ts";
import { parseXml, tag, wrap, xmlDocument, type XmlElement } from "./wire/xml.ts";

const KEY_CHARS_MAX = 128;
const VALUE_CHARS_MAX = 256;
const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
/** Limit of the tags of an object. */
export const OBJECT_TAGS_MAX = 10;
/** Limit of the tags of a bucket. */
export const BUCKET_TAGS_MAX = 50;

/** Parses `x-amz-tagging`, tags in the form of a query. Throws InvalidArgument or InvalidTag. */
export function readTagging(text: string): Record<string, string> {
  const pairs = parseTaggingQuery(decodeFieldText(text));
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) throw notEncoded(text);
  return checkTags(pairs, OBJECT_TAGS_MAX);
}

function parseTaggingQuery(text: string): QueryPair[] {
  try {
    return parseQuery(text);
  } catch (error) {
    throw error instanceof S3Error ? notEncoded(text) : error;
  }
}

function notEncoded(text: string): S3Error {
  return new S3Error("InvalidArgument", {
    message:
      "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.",
    elements: [
      ["ArgumentName", "x-amz-tagging"],
      ["ArgumentValue", text.slice(0, 256)],
    ],
  });
}

/** Parses a Tagging document. */
export function parseTagging(body: Buffer, tagsMax: number): Record<string, string> {
  const root = parseXml(body, "Tagging");
  root.allow("TagSet");
  const set = root.find("TagSet");
  if (set === undefined) throw new S3Error("MalformedXML");
  return checkPart(["TagSet"], () => {
    set.allow("Tag");
    return readTags(set, tagsMax);
  });
}

/** Parses the `Tag` elements of a document. Throws InvalidTag. */
export function readTags(set: XmlElement, tagsMax: number): Record<string, string> {
  const pairs = set.map("Tag", (item) => {
    item.allow("Key", "Value");
    return [item.getText("Key"), item.getText("Value")] as const;
  });
  return checkPart(["Tag"], () => checkTags(pairs, tagsMax));
}

/** Formats tags for `x-amz-tagging`; "" without any. */
export function formatTagQuery(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${encodeUri(name)}=${encodeUri(value)}`)
    .join("&");
}

/** Formats a Tagging document. */
export function formatTagging(tags: Readonly<Record<string, string>>): string {
  const items = Object.entries(tags).map(([key, value]) =>
    wrap("Tag", tag("Key", key) + tag("Value", value)),
  );
  return xmlDocument("Tagging", wrap("TagSet", items.join("")));
}

function checkTags(
  pairs: readonly (readonly [string, string])[],
  tagsMax: number,
): Record<string, string> {
  if (pairs.length > tagsMax) {
    throw new S3Error(
      tagsMax === OBJECT_TAGS_MAX ? "BadRequest" : "InvalidTag",
      `Object tags cannot be greater than ${tagsMax}`,
    );
  }
  // A tag may have the name of a member that every object has.
  const tags = Object.create(null) as Record<string, string>;
  for (const [index, [key, value]] of pairs.entries()) {
    checkPart([index], () => {
      checkTag(key, value);
      if (key in tags) throw invalidTag("Cannot provide multiple Tags with the same key", "Key");
    });
    tags[key] = value;
  }
  return { ...tags };
}

function checkTag(key: string, value: string): void {
  if (key === "" || key.length > KEY_CHARS_MAX) {
    throw invalidTag("The TagKey you have provided is invalid", "Key", `1 to ${KEY_CHARS_MAX}`);
  }
  if (value.length > VALUE_CHARS_MAX) {
    const length = `at most ${VALUE_CHARS_MAX}`;
    throw invalidTag("The TagValue you have provided is invalid", "Value", length);
  }
  const stranger = [key, value].findIndex((text) => !TAG_TEXT.test(text));
  if (stranger === -1 && !/^aws:/i.test(key)) return;
  throw new S3Error("InvalidTag", {
    message: "The TagKey or TagValue you have provided is invalid",
    reason:
      stranger === -1
        ? "Keys that begin with aws: are reserved"
        : "Allowed are letters, digits, spaces and _ . : / = + - @",
    path: [stranger === 1 ? "Value" : "Key"],
  });
}

function invalidTag(message: string, part: "Key" | "Value", length?: string): S3Error {
  const reason = length === undefined ? message : `The ${part} must have ${length} characters`;
  return new S3Error("InvalidTag", { message, reason, path: [part] });
}
