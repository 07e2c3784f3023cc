// The header of a received message: the trace fields that the service adds.
import { splitMessage } from "../message/header-fields.ts";

/** Adds fields on top, and removes Authentication-Results that claim to be from this host (RFC 8601 section 5). */
export function addTrace(content: Buffer, trace: string, hostname: string): Buffer {
  const { fields, body } = splitMessage(content);
  const kept = fields.filter(({ name, text }) => !isForged(name, text, hostname));
  const head = `${trace}${kept.map(({ text }) => text).join("")}`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

function isForged(name: string, text: string, hostname: string): boolean {
  if (name !== "authentication-results") return false;
  const value = text.slice(text.indexOf(":") + 1).replaceAll(/\([^)]*\)/g, " ");
  return (
    value.trim().split(/[\s;]/, 1)[0]!.replaceAll('"', "").toLowerCase() === hostname.toLowerCase()
  );
}
