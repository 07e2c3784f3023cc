// Time of the renewal of a certificate: chosen in the window that the CA suggests (RFC 9773), or by its life.
import { createHash, X509Certificate } from "node:crypto";
import { z } from "zod";
import { type AcmeClient, parse } from "./acme-client.ts";
import { readRetryAfter } from "./acme-error.ts";

/** Lives below this end at half rather than at two thirds. */
const SHORT_LIFE_MS = 10 * 86_400_000;
const JITTER = 0.05;
const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DEFAULT_CHECK_MS = 6 * HOUR_MS;

const renewalInfoSchema = z.object({
  suggestedWindow: z.object({ start: z.iso.datetime(), end: z.iso.datetime() }),
});

/** Beginning and end of a certificate, ms since 1970. */
export interface Life {
  startMs: number;
  endMs: number;
}

/** Returns the life of the first certificate of a chain. */
export function readLife(certPem: string): Life {
  const { validFromDate, validToDate } = new X509Certificate(certPem);
  return { startMs: validFromDate.getTime(), endMs: validToDate.getTime() };
}

/**
 * Rank of a certificate among those of a name: the later start wins. Starts are whole seconds; gateways that have ordered within
 * the same one agree by the digest.
 */
export function rankCertificate(certPem: string): number {
  const { validFromDate, raw } = new X509Certificate(certPem);
  const digest = createHash("sha256").update(raw).digest();
  return validFromDate.getTime() + (digest.readUInt32BE(0) % SECOND_MS);
}

/** Returns the time of renewal, at 2/3 of the life (1/2 below 10 days) ± 5 %. `random` is in [0, 1). */
export function chooseByLife({ startMs, endMs }: Life, random: number): number {
  const lifeMs = endMs - startMs;
  const part = lifeMs < SHORT_LIFE_MS ? 1 / 2 : 2 / 3;
  return startMs + lifeMs * (part + (2 * random - 1) * JITTER);
}

/** The advice of a CA. */
export interface RenewalAdvice {
  renewAtMs: number;
  /** Time of the next question. */
  checkAtMs: number;
}

/** Asks the CA; undefined if its directory has no such resource. Throws AcmeError. */
export async function askForRenewal(
  client: AcmeClient,
  certPem: string,
  nowMs: number,
  random: number,
): Promise<RenewalAdvice | undefined> {
  const { renewalInfo } = await client.readDirectory();
  const id = identifyCertificate(certPem);
  if (renewalInfo === undefined || id === undefined) return undefined;
  const answer = await client.get(`${renewalInfo.replace(/\/$/, "")}/${id}`);
  const { suggestedWindow } = parse(renewalInfoSchema, answer, "the renewal information");
  const startMs = Date.parse(suggestedWindow.start);
  const endMs = Math.max(startMs, Date.parse(suggestedWindow.end));
  const askedMs = readRetryAfter(answer.headers, nowMs) ?? DEFAULT_CHECK_MS;
  return {
    renewAtMs: startMs + random * (endMs - startMs),
    checkAtMs: nowMs + Math.min(DAY_MS, Math.max(HOUR_MS, askedMs)),
  };
}

/** ID of a certificate (RFC 9773, section 4.1); undefined if it has no authority key identifier. */
export function identifyCertificate(certPem: string): string | undefined {
  const { raw, serialNumber } = new X509Certificate(certPem);
  const keyId = findAuthorityKeyId(raw);
  if (keyId === undefined) return undefined;
  const digits = serialNumber.length % 2 === 0 ? serialNumber : `0${serialNumber}`;
  const serial = Buffer.from(digits, "hex");
  const signed = (serial[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), serial]) : serial;
  return `${keyId.toString("base64url")}.${signed.toString("base64url")}`;
}

// The extension 2.5.29.35: OID, OCTET STRING of a SEQUENCE that begins with [0] keyIdentifier. All lengths are below 128.
function findAuthorityKeyId(der: Buffer): Buffer | undefined {
  const at = der.indexOf(Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x23, 0x04]));
  if (at === -1) return undefined;
  const begin = at + 7;
  const [sequenceTag, , keyTag, length = 0] = der.subarray(begin, begin + 4);
  if (sequenceTag !== 0x30 || keyTag !== 0x80 || length >= 0x80) return undefined;
  const keyId = der.subarray(begin + 4, begin + 4 + length);
  return keyId.length === length && length > 0 ? keyId : undefined;
}
