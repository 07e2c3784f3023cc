// Hides credentials in captured requests wherever they are shown, and puts them back into edited ones.
import { PlatformError } from "@platform/kernel/errors";
import type { Field } from "./message.ts";

/** Stands for a hidden value. */
const HIDDEN = "[redacted]";

/** Names of fields, query parameters and members whose values are credentials. */
const SECRET_NAME =
  /(?:^|[-_.[])(?:auth|authorization|credentials?|otp|pwd|session|session-?id|sid|sig)(?:$|\])|(?:api[-_]?key|assertion|jwt|passphrase|passwd|password|secret|signature|token|verifier)(?:[-_.]?\d+)?(?:$|\])/i;
/** Fields whose values are URLs. */
const URL_FIELDS = new Set(["referer", "location", "content-location", "refresh", "link"]);
const PARAMETER = /([?&;]|^)([^=&;#\s]{1,256})=([^&;#\s"'>]*)/g;
/** A JSON member with a text value, also one that is cut off. */
const MEMBER = /("((?:[^"\\]|\\.){1,256})"\s{0,16}:\s{0,16}")((?:[^"\\]|\\.)*)/g;
/** A part of multipart/form-data with a text value on one line. */
const PART =
  /(name="([^"\r\n]{1,256})"[^\r\n]{0,256}\r\n(?:[^\r\n]{1,256}\r\n){0,8}\r\n)([^\r\n]*)/g;

/** A text with hidden values. */
interface Hidden {
  readonly text: string;
  /** The hidden values, in order. */
  readonly secrets: readonly string[];
}

/** Hides the credentials of a field's value. */
export function redactField([name, value]: Field): Field {
  return [name, hideField(name, value).text];
}

/** Hides the credentials of a path's query. */
export function redactPath(path: string): string {
  return hidePath(path).text;
}

/** Hides the credentials of a content. `mediaType` is Content-Type, "" if absent. */
export function redactText(text: string, mediaType: string): string {
  return hideText(text, mediaType).text;
}

/** Puts the credentials of `original` back into an edited path. */
export function restorePath(edited: string, original: string): string {
  return restore(edited, original, hidePath(original), "path");
}

/** Puts the credentials back into edited fields: those of the field of the same name, first to first. */
export function restoreFields(edited: readonly Field[], original: readonly Field[]): Field[] {
  const left = original.map(([name, value]): Field => [name.toLowerCase(), value]);
  return edited.map(([name, value]) => {
    if (!value.includes(HIDDEN)) return [name, value];
    const at = left.findIndex(([known]) => known === name.toLowerCase());
    const [found] = at === -1 ? [] : left.splice(at, 1);
    if (found === undefined) throw createRestoreError(`headers: ${name}`);
    return [name, restore(value, found[1], hideField(name, found[1]), `headers: ${name}`)];
  });
}

/** Puts the credentials of `original` back into an edited content. */
export function restoreText(edited: string, original: string, mediaType: string): string {
  return restore(edited, original, hideText(original, mediaType), "body");
}

function hideField(name: string, value: string): Hidden {
  const key = name.toLowerCase();
  if (key === "authorization" || key === "proxy-authorization") {
    return hide(value, /^(\S+ +)?()(.+)$/g, () => true);
  }
  if (key === "cookie") return hide(value, /([^=;]*=)()([^;]*)/g, () => true);
  if (key === "set-cookie") return hide(value, /^([^=;]*=)()([^;]*)/g, () => true);
  if (SECRET_NAME.test(key)) return hide(value, /^()()(.+)$/g, () => true);
  return URL_FIELDS.has(key) ? hidePath(value) : { text: value, secrets: [] };
}

function hidePath(path: string): Hidden {
  const start = path.indexOf("?");
  if (start === -1) return { text: path, secrets: [] };
  const hidden = hideParameters(path.slice(start));
  return { ...hidden, text: path.slice(0, start) + hidden.text };
}

function hideText(text: string, mediaType: string): Hidden {
  const type = mediaType.toLowerCase();
  if (type.includes("x-www-form-urlencoded")) return hideParameters(text);
  if (type.includes("multipart/form-data")) return hide(text, PART, isSecret);
  return hide(text, MEMBER, isSecret);
}

function hideParameters(text: string): Hidden {
  const secrets: string[] = [];
  const shown = text.replace(PARAMETER, (whole, before: string, name: string, value: string) => {
    if (value === "" || !isSecret(name)) return whole;
    secrets.push(value);
    return `${before}${name}=${HIDDEN}`;
  });
  return { text: shown, secrets };
}

/** Hides the third group of each match whose second group, a name, is that of a credential. */
function hide(text: string, pattern: RegExp, isHidden: (name: string) => boolean): Hidden {
  const secrets: string[] = [];
  const shown = text.replace(pattern, (whole, before = "", name = "", value = "") => {
    if (value === "" || !isHidden(name as string)) return whole;
    secrets.push(value as string);
    return `${before}${HIDDEN}`;
  });
  return { text: shown, secrets };
}

function isSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Each mark in the edited text stands for the hidden value at the same position: all must be there, or none. */
function restore(edited: string, original: string, { secrets }: Hidden, place: string): string {
  const parts = edited.split(HIDDEN);
  if (parts.length === 1) return edited;
  if (parts.length - 1 !== secrets.length || original.includes(HIDDEN)) {
    throw createRestoreError(place);
  }
  return parts.map((part, index) => part + (secrets[index] ?? "")).join("");
}

function createRestoreError(place: string): PlatformError {
  return new PlatformError(
    "validation_failed",
    `${place}: ${HIDDEN} can only stand for the credentials of the captured request, each at its position.`,
  );
}
