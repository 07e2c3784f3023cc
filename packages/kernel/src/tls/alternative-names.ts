// Names that a certificate contains (subjectAltName).
import type { X509Certificate } from "node:crypto";

/** One name of a certificate. */
export interface AlternativeName {
  /** As OpenSSL writes it: `DNS`, `URI`, `email`, `IP Address` or another one. */
  kind: string;
  value: string;
}

/** Lists the names of a certificate; empty if it has none, or if they are malformed. */
export function listAlternativeNames(
  certificate: Pick<X509Certificate, "subjectAltName">,
): AlternativeName[] {
  const text = certificate.subjectAltName ?? "";
  const names: AlternativeName[] = [];
  for (let at = 0; at < text.length;) {
    const colon = text.indexOf(":", at);
    if (colon === -1) return [];
    const start = colon + 1;
    const end = text[start] === '"' ? findQuotedEnd(text, start) : findEnd(text, start);
    const raw = text.slice(start, end);
    if (end === -1 || (end < text.length && !text.startsWith(", ", end))) return [];
    const value = raw.startsWith('"') ? readQuoted(raw) : raw;
    if (value === undefined) return [];
    names.push({ kind: text.slice(at, colon), value });
    at = end + 2;
  }
  return names;
}

/** Lists the DNS names of a certificate in lower case. */
export function listDnsNames(certificate: Pick<X509Certificate, "subjectAltName">): string[] {
  return listAlternativeNames(certificate).flatMap(({ kind, value }) =>
    kind === "DNS" ? [value.toLowerCase()] : [],
  );
}

function findEnd(text: string, start: number): number {
  const end = text.indexOf(", ", start);
  return end === -1 ? text.length : end;
}

// Values that contain separators are quoted like strings of JSON.
function findQuotedEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return -1;
}

function readQuoted(raw: string): string | undefined {
  try {
    return String(JSON.parse(raw));
  } catch {
    return undefined;
  }
}
