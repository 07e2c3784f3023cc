// The answer of the remote server, as reply to SMTP or as it is quoted in reports.

export interface RemoteAnswer {
  /** SMTP reply code. */
  code?: number | undefined;
  /** Enhanced status code (RFC 3463). */
  enhanced?: string | undefined;
  text: string;
}

// `550 5.1.1`, `550-5.1.1`, `550 #5.1.1`, `ERROR_CODE :550,`, `#550`; not a part of an address, a number or a version.
const CODE = /(?:^|[\s:;,"'(<#[])([45]\d\d)(?=[\s,.:;-])(?!\.\d)/;
const ENHANCED = /(?:^|[\s:;,"'(<#[-])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/;
const URL_TEXT = /\bhttps?:\/\/\S+|\bwww\.\S+/giu;
const ADDRESS = /[<(["']*[^\s<>()[\]"',;:]+@[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*[>)\]"']*/gu;
// The last label is in lower case: a sentence that follows a dot without a blank is none.
const HOST = /(?<![\p{L}\p{N}.-])[\p{L}\p{N}](?:[\p{L}\p{N}_-]*\.)+\p{Ll}{2,}(?![\p{L}\p{N}.-])/gu;
const IP = /\b\d{1,3}(?:\.\d{1,3}){3}\b|\[?\b(?:[0-9a-f]{1,4}:){2,7}[0-9a-f:]*\]?/gi;
const COMMAND = /\(in reply to (?:RCPT TO|end of DATA|DATA)\b[^)]*\)|\bafter RCPT(?: TO)?\b/gi;

/** Reads the codes that a text quotes, as in Diagnostic-Code. */
export function readAnswer(text: string): RemoteAnswer {
  const code = CODE.exec(text)?.[1];
  const enhanced = ENHANCED.exec(text)?.[1];
  return { code: code === undefined ? undefined : Number(code), enhanced, text };
}

/**
 * Returns the sentences of an answer: addresses become the word `address`, URLs, hosts and IP addresses disappear, since their
 * names say nothing about the reason: `full-policy@spam.example`.
 */
export function simplifyAnswer(text: string): string {
  return text
    .replaceAll(URL_TEXT, " ")
    .replaceAll(ADDRESS, " address ")
    .replaceAll(COMMAND, " ")
    .replaceAll(IP, " ")
    .replaceAll(HOST, " ")
    .replaceAll(/[45]\d\d-(?=[245]\.\d+\.\d+\b|[A-Z])/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
