// Compiles lists of field names to the table used when a field section is copied.
import { ALIAS, findAliasedField, Known, KNOWN_COUNT } from "../parse/known-fields.ts";
import type { FieldCuts } from "./head-writer.ts";

const HOP_BY_HOP = [
  Known.Connection,
  Known.KeepAlive,
  Known.ProxyConnection,
  Known.ProxyAuthorization,
  Known.ProxyAuthenticate,
  Known.Te,
  Known.Upgrade,
  Known.Http2Settings,
];

/** Compiles names of any case. Spellings with `_` for `-` are cut as well: CGI-like upstreams cannot distinguish them. */
export function compileCuts(names: Iterable<string>): FieldCuts {
  const known = new Uint8Array(KNOWN_COUNT);
  const other: string[] = [];
  for (const name of names) {
    const bytes = Buffer.from(name, "latin1");
    const id = findAliasedField(bytes, 0, bytes.length) & ~ALIAS;
    if (id === Known.Other) other.push(name.toLowerCase().replaceAll("_", "-"));
    else known[id] = 1;
  }
  return { known, other };
}

/**
 * Like `compileCuts`, and also cuts the hop-by-hop fields of RFC 9110 §7.6.1 that are not part of the message's framing.
 * Content-Length, Transfer-Encoding and Trailer are kept for bodies that pass through unchanged; name them to cut them.
 */
export function compileForwardCuts(names: Iterable<string>): FieldCuts {
  const cuts = compileCuts(names);
  for (const id of HOP_BY_HOP) cuts.known[id] = 1;
  return cuts;
}
