// Reads the head that was written for an upstream, for copies of the request.

/** Fields of the connection to the upstream, and the framing of the body, of which a copy has its own. */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "te",
  "transfer-encoding",
]);

/** A request head as an upstream received it. */
export interface SentHead {
  method: string;
  /** Path and query. */
  target: string;
  /** Fields in latin1, without those of the connection. */
  fields: [name: string, value: string][];
}

/** Reads the bytes of a head. */
export function readSentHead(bytes: Buffer): SentHead {
  const [line = "", ...lines] = bytes.toString("latin1").split("\r\n");
  const [method = "GET", target = "/"] = line.split(" ");
  const fields: [string, string][] = [];
  for (const each of lines) {
    const colon = each.indexOf(":");
    if (colon === -1) continue;
    const name = each.slice(0, colon);
    if (!CONNECTION_FIELDS.has(name.toLowerCase())) {
      fields.push([name, each.slice(colon + 1).trim()]);
    }
  }
  return { method, target, fields };
}
