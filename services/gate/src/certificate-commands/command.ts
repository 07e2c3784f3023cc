// The commands `certificates list`, `certificates renew` and `certificates revoke`.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createEgress } from "@platform/kernel/egress";
import { z } from "zod";
import type { CertificateOptions } from "../config/certificate-options.ts";

const PATH = "/api/v1/admin/certificates";
const ANY_NETWORK = ["0.0.0.0/0", "::/0"];
const TIMEOUT_MS = 60_000;
/** Time of an order, and a little more. */
const RENEWAL_MS = 200_000;
const POLL_MS = 1_000;
const ANSWER_BYTES_MAX = 16 * 1_048_576;

const nullable = z.string().nullable();
const automaticSchema = z.object({
  name: z.string(),
  not_after: nullable,
  renew_at: nullable,
  last_error: nullable,
  fingerprint_sha256: nullable,
  is_ordering: z.boolean(),
});
const listSchema = z.object({
  items: z.array(
    z.object({
      use: z.string(),
      source: z.string(),
      serves: z.array(z.string()),
      not_after: nullable,
      status: z.string(),
      file: z.string(),
    }),
  ),
  automatic: z.array(automaticSchema),
});
const problemSchema = z.object({ detail: z.string() });

type Print = (text: string) => void;
type Automatic = z.output<typeof automaticSchema>;

/** Prints one line for each certificate of the listener, and for each name without one. */
export async function listCertificates(options: CertificateOptions, print: Print): Promise<void> {
  const { items, automatic } = await readList(options);
  const lines = items
    .filter(({ use }) => use === "listener")
    .map(({ source, serves, not_after: end, status }) =>
      [serves.join(","), source, status, end ?? "-"].join("  "),
    );
  const missing = automatic
    .filter(({ not_after: end }) => end === null)
    .map(({ name }) => [name, "acme", "missing", "-"].join("  "));
  const faults = automatic.flatMap(({ name, last_error: fault }) =>
    fault === null ? [] : `${name}: ${fault}`,
  );
  for (const line of [...lines, ...missing, ...faults]) print(`${line}\n`);
}

/** Orders a new certificate of a name, and waits for it. Throws an Error with the fault. */
export async function renewCertificate(
  name: string,
  options: CertificateOptions,
  print: Print,
): Promise<void> {
  const before = await findName(name, options);
  await send(options, "POST", `${PATH}/${encodeURIComponent(name)}/renew`);
  const end = await waitForChange(name, before, options);
  print(`${name}: new certificate, valid until ${end}\n`);
}

/** Revokes the certificate of a name, and waits for the one in its place. Throws an Error with the fault. */
export async function revokeCertificate(
  name: string,
  options: CertificateOptions & { reason: string },
  print: Print,
): Promise<void> {
  const before = await findName(name, options);
  const body = JSON.stringify({ reason: options.reason });
  await send(options, "POST", `${PATH}/${encodeURIComponent(name)}/revoke`, body);
  print(`${name}: revoked\n`);
  const end = await waitForChange(name, before, options);
  print(`${name}: new certificate, valid until ${end}\n`);
}

async function waitForChange(
  name: string,
  before: Automatic | undefined,
  options: CertificateOptions,
): Promise<string> {
  const endMs = performance.now() + RENEWAL_MS;
  let hasBegun = false;
  while (performance.now() < endMs) {
    const now = await findName(name, options);
    if (now === undefined) throw new Error(`${name} is no longer one of the names`);
    if (now.fingerprint_sha256 !== before?.fingerprint_sha256) return now.not_after ?? "-";
    if (hasBegun && !now.is_ordering && now.last_error !== null) throw new Error(now.last_error);
    hasBegun ||= now.is_ordering;
    await delay(POLL_MS);
  }
  throw new Error(`no certificate within ${RENEWAL_MS / 1_000} s`);
}

async function findName(name: string, options: CertificateOptions): Promise<Automatic | undefined> {
  const { automatic } = await readList(options);
  return automatic.find((one) => one.name === name);
}

async function readList(options: CertificateOptions): Promise<z.output<typeof listSchema>> {
  return listSchema.parse(JSON.parse(await send(options, "GET", PATH)));
}

async function send(
  { url, token, ca }: CertificateOptions,
  method: string,
  path: string,
  body?: string,
): Promise<string> {
  const fetch = createEgress({
    allowedNetworks: ANY_NETWORK,
    timeoutMs: TIMEOUT_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
    ...(ca === undefined ? {} : { ca: [readFileSync(ca, "utf8")] }),
  });
  const headers = {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
  };
  const answer = await fetch(new URL(path, url), {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.text();
  if (answer.ok) return text;
  throw new Error(`the gateway answers ${answer.status}: ${readDetail(text)}`);
}

function readDetail(text: string): string {
  try {
    return problemSchema.parse(JSON.parse(text)).detail;
  } catch {
    return text.slice(0, 500);
  }
}
