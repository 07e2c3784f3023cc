// Header fields: encoding and folding (RFC 5322 section 2.2.3, RFC 2047, RFC 2231).
import type { Mailbox } from "../address/mailbox.ts";

const LINE_MAX = 76;
const ENCODED_WORD_BYTES_MAX = 45;
const PARAMETER_PART_MAX = 54;
const ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*$/;
const ASCII = /^[\x20-\x7e]*$/;

/** Formats an unstructured field such as Subject, folded, with CRLF. */
export function formatTextField(name: string, value: string): string {
  return fold(name, encodeText(value));
}

/** Formats a field of mailboxes, folded, with CRLF. */
export function formatMailboxField(name: string, mailboxes: readonly Mailbox[]): string {
  return fold(name, mailboxes.map(formatMailbox).join(", "));
}

/** Formats a field whose value is ASCII and has its final form, with CRLF; long values are folded at spaces. */
export function formatRawField(name: string, value: string): string {
  return fold(name, value);
}

/** Formats a parameter of Content-Type or Content-Disposition; other than ASCII by RFC 2231. */
export function formatParameter(name: string, value: string): string {
  if (/^[\w.-]+$/.test(value)) return `${name}=${value}`;
  if (ASCII.test(value)) return `${name}="${value.replaceAll(/["\\]/g, "\\$&")}"`;
  const parts = encodeParts(value);
  if (parts.length === 1) return `${name}*=utf-8''${parts[0]}`;
  return parts
    .map((part, index) => `${name}*${index}*=${index === 0 ? "utf-8''" : ""}${part}`)
    .join(";\r\n ");
}

// Parts of a value that do not split characters (RFC 2231 section 3): a line has at most 998 of them.
function encodeParts(value: string): string[] {
  const parts = [""];
  for (const character of value) {
    const encoded = encodeURIComponent(character).replaceAll(/['()*]/g, escapePercent);
    const last = parts.at(-1)!;
    if (last.length + encoded.length > PARAMETER_PART_MAX) parts.push(encoded);
    else parts[parts.length - 1] = last + encoded;
  }
  return parts;
}

function escapePercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function formatMailbox({ name, address }: Mailbox): string {
  if (name === "") return address;
  if (ATOM.test(name) && !name.includes("=?")) return `${name} <${address}>`;
  if (ASCII.test(name)) return `"${name.replaceAll(/["\\]/g, "\\$&")}" <${address}>`;
  return `${encodeWords(name)} <${address}>`;
}

// A text that looks like an encoded word is encoded, so that readers see it as it was given.
function encodeText(text: string): string {
  const hasLongWord = text.length > LINE_MAX - 20 && /[^ ]{60}/.test(text);
  return ASCII.test(text) && !text.includes("=?") && !hasLongWord ? text : encodeWords(text);
}

// Encoded words of at most 75 characters, which do not split characters (RFC 2047 sections 2 and 5).
function encodeWords(text: string): string {
  const words: string[] = [];
  let chunk = "";
  let bytes = 0;
  for (const character of text) {
    const size = Buffer.byteLength(character);
    if (bytes + size > ENCODED_WORD_BYTES_MAX) {
      words.push(chunk);
      chunk = "";
      bytes = 0;
    }
    chunk += character;
    bytes += size;
  }
  words.push(chunk);
  return words.map((word) => `=?utf-8?B?${Buffer.from(word).toString("base64")}?=`).join(" ");
}

function fold(name: string, value: string): string {
  const whole = `${name}: ${value}`;
  if (whole.length <= LINE_MAX) return `${whole}\r\n`;
  const lines: string[] = [];
  let line = `${name}:`;
  for (const word of value.split(" ")) {
    const isFirst = line.length === name.length + 1 && lines.length === 0;
    if (!isFirst && line.length + 1 + word.length > LINE_MAX && line.trim() !== "" && word !== "") {
      lines.push(line);
      line = "";
    }
    line += ` ${word}`;
  }
  lines.push(line);
  return `${lines.join("\r\n")}\r\n`;
}
