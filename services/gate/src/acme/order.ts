// One order: proves the control of a name, and obtains its certificate (RFC 8555, section 7).
import { createPublicKey, X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { type AcmeAnswer, type AcmeClient, parse, requireLocation } from "./acme-client.ts";
import { AcmeError, readRetryAfter } from "./acme-error.ts";
import { checkUsable, listDnsNames } from "@platform/kernel/tls";
import { createCertificateKey, createRequest, type KeyType } from "./certificate-request.ts";

/** Kinds of challenges. */
export type ChallengeType = "tls-alpn-01" | "http-01" | "dns-01";

/** A proof of the control of a name. */
export interface Proof {
  type: ChallengeType;
  /** The name without `*.`. */
  name: string;
  token: string;
  keyAuthorization: string;
}

/** Options of {@link obtainCertificate}. */
export interface OrderOptions {
  client: AcmeClient;
  name: string;
  /** The kinds that are possible for the name, the preferred one first. */
  challenges: readonly ChallengeType[];
  keyType: KeyType;
  profile: string | undefined;
  /** ID of the certificate that this one replaces (RFC 9773). */
  replaces: string | undefined;
  /** Makes the proof visible to the CA; resolves with its removal. */
  publish: (proof: Proof, signal: AbortSignal) => Promise<() => Promise<void>>;
  readNowMs: () => number;
  signal: AbortSignal;
}

/** A certificate chain and its key in PEM. */
export interface ObtainedCertificate {
  certPem: string;
  keyPem: string;
}

const POLL_MS = 1_000;
const POLL_MS_MAX = 10_000;
const CHAIN_CHARACTERS_MAX = 100_000;

const url = z.string().max(2_048);
const problem = z.object({ detail: z.string().default("") }).optional();

const orderSchema = z.object({
  status: z.string(),
  authorizations: z.array(url).max(100),
  finalize: url,
  certificate: url.optional(),
  error: problem,
});

const authorizationSchema = z.object({
  status: z.string(),
  challenges: z
    .array(
      z.object({
        type: z.string(),
        url,
        token: z.string().max(1_024).optional(),
        status: z.string(),
        error: problem,
      }),
    )
    .max(100),
});

/** Obtains a certificate. Throws {@link AcmeError}. */
export async function obtainCertificate(options: OrderOptions): Promise<ObtainedCertificate> {
  const { client } = options;
  const { location, order } = await createOrder(options);
  for (const authorization of order.authorizations) await prove(options, authorization);
  const key = createCertificateKey(options.keyType);
  const csr = createRequest(key, createPublicKey(key), options.name).toString("base64url");
  if (order.status !== "valid") {
    const ready = await poll(options, () => client.post(location), orderSchema, "pending");
    requireStatus(ready, "ready", "the order");
  }
  await client.post(order.finalize, { csr });
  const valid = await poll(options, () => client.post(location), orderSchema, "processing");
  requireStatus(valid, "valid", "the order");
  if (valid.certificate === undefined) throw new AcmeError("", "the order has no certificate");
  const accept = "application/pem-certificate-chain";
  const { text: certPem } = await client.post(valid.certificate, undefined, accept);
  const keyPem = key.export({ type: "pkcs8", format: "pem" });
  checkChain(options, certPem, keyPem);
  return { certPem, keyPem };
}

async function createOrder(options: OrderOptions) {
  const { client, name, profile, replaces } = options;
  const { newOrder, meta } = await client.readDirectory();
  if (profile !== undefined && meta?.profiles?.[profile] === undefined) {
    const known = Object.keys(meta?.profiles ?? {}).slice(0, 20);
    const has = known.length === 0 ? "has no profiles" : `has the profiles ${known.join(", ")}`;
    throw new AcmeError("invalidProfile", `acme_profile is ${profile}, but the directory ${has}`);
  }
  const identifiers = [{ type: "dns", value: name }];
  const wanted = { identifiers, ...(profile === undefined ? {} : { profile }) };
  const send = (more: object): Promise<AcmeAnswer> => client.post(newOrder, { ...wanted, ...more });
  let answer: AcmeAnswer;
  try {
    answer = await send(replaces === undefined ? {} : { replaces });
  } catch (error) {
    // The directory does not know the replaced certificate, or that has been replaced already.
    const isOfReplaced =
      error instanceof AcmeError && ["alreadyReplaced", "malformed"].includes(error.type);
    if (replaces === undefined || !isOfReplaced) throw error;
    answer = await send({});
  }
  const order = parse(orderSchema, answer, "the order");
  return { location: requireLocation(answer, "the order"), order };
}

async function prove(options: OrderOptions, authorizationUrl: string): Promise<void> {
  const { client, name, challenges, signal } = options;
  const read = () => client.post(authorizationUrl);
  const authorization = parse(authorizationSchema, await read(), "the authorization");
  if (authorization.status === "valid") return;
  const chosen = challenges
    .map((type) => authorization.challenges.find((challenge) => challenge.type === type))
    .find((challenge) => challenge?.token !== undefined);
  if (chosen?.token === undefined) {
    const offered = authorization.challenges.map(({ type }) => type).join(", ");
    throw new AcmeError(
      "",
      `the directory offers the challenges ${offered}, of which ${challenges.join(", ")} are possible`,
    );
  }
  const { token } = chosen;
  if (!/^[A-Za-z0-9_-]+$/.test(token)) throw new AcmeError("", "the token has other characters");
  const withdraw = await options.publish(
    {
      type: chosen.type as ChallengeType,
      name: name.replace(/^\*\./, ""),
      token,
      keyAuthorization: client.authorize(token),
    },
    signal,
  );
  try {
    await client.post(chosen.url, {});
    const outcome = await poll(options, read, authorizationSchema, "pending");
    if (outcome.status === "valid") return;
    const fault = outcome.challenges.find(({ type }) => type === chosen.type)?.error?.detail;
    throw new AcmeError("unauthorized", `${chosen.type} failed: ${fault ?? outcome.status}`);
  } finally {
    await withdraw();
  }
}

// The signal ends it.
async function poll<T extends { status: string }>(
  { readNowMs, signal }: OrderOptions,
  read: () => Promise<AcmeAnswer>,
  schema: z.ZodType<T>,
  waiting: string,
): Promise<T> {
  for (;;) {
    const answer = await read();
    const value = parse(schema, answer, "the resource");
    if (value.status !== waiting) return value;
    const askedMs = readRetryAfter(answer.headers, readNowMs()) ?? POLL_MS;
    await delay(Math.min(POLL_MS_MAX, Math.max(POLL_MS, askedMs)), undefined, { signal });
  }
}

function requireStatus(
  { status, error }: { status: string; error?: { detail: string } | undefined },
  wanted: string,
  subject: string,
): void {
  if (status === wanted) return;
  throw new AcmeError("", `${subject} is ${status}: ${error?.detail ?? "without a reason"}`);
}

function checkChain({ name, readNowMs }: OrderOptions, certPem: string, keyPem: string): void {
  if (certPem.length > CHAIN_CHARACTERS_MAX) throw new AcmeError("", "the chain is too long");
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(certPem);
  } catch (cause) {
    throw new AcmeError("", "the chain is no certificate in PEM", undefined, cause);
  }
  const publicKey = createPublicKey(keyPem);
  if (!certificate.publicKey.equals(publicKey)) {
    throw new AcmeError("", "the certificate is that of another key");
  }
  if (!listDnsNames(certificate).includes(name)) {
    throw new AcmeError("", `the certificate is not one of ${name}`);
  }
  if (certificate.validToDate.getTime() <= readNowMs()) {
    throw new AcmeError("", "the certificate has expired already");
  }
  // All further changes of the gateway would be refused with it.
  checkUsable({ cert: certPem, key: keyPem }, "the chain");
}
