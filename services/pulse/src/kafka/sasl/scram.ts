// SASL SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without channel binding.
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import {
  AUTHENTICATION_FAILED,
  type CredentialStore,
  type SaslExchange,
  type SaslStep,
  type ScramCredential,
} from "./mechanism.ts";

/** The two SCRAM mechanisms. */
export type ScramMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-512";

const MESSAGE_BYTES_MAX = 4096;
const NONCE_BYTES = 24;
/** Default number of iterations: Kafka's default, and the minimum of RFC 7677. */
const ITERATIONS_DEFAULT = 4096;
const DIGESTS = { "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512" } as const;
const DIGEST_BYTES = { "SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64 } as const;
/** `gs2-header` and the rest of the first message: no channel binding, no other identity. */
const FIRST_MESSAGE = /^([ny]),(?:a=([^,]*))?,(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/;
const FINAL_MESSAGE =
  /^(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[^p].*)?),p=([A-Za-z0-9+/=]+)$/;

interface FirstMessages {
  bare: string;
  header: string;
  clientNonce: string;
  nonce: string;
  serverFirst: string;
}

/** Derives the stored credential of a password. */
export function deriveScramCredential(
  mechanism: ScramMechanism,
  password: string,
  salt: Buffer = randomBytes(16),
  iterations = ITERATIONS_DEFAULT,
): ScramCredential {
  const digest = DIGESTS[mechanism];
  const salted = pbkdf2Sync(password, salt, iterations, DIGEST_BYTES[mechanism], digest);
  const clientKey = hmac(digest, salted, "Client Key");
  return {
    salt,
    iterations,
    storedKey: createHash(digest).update(clientKey).digest(),
    serverKey: hmac(digest, salted, "Server Key"),
  };
}

/**
 * Authentication by SCRAM. For unknown users it runs to the end with a salt that is always the same for that name
 * (`fakeSaltKey`), so that it does not reveal which users exist.
 */
export function beginScram(
  mechanism: ScramMechanism,
  credentials: CredentialStore,
  fakeSaltKey: Buffer,
): SaslExchange {
  const digest = DIGESTS[mechanism];
  let first: FirstMessages | undefined;
  let found: ReturnType<CredentialStore["findScram"]>;

  async function takeFirst(text: string): Promise<SaslStep> {
    const match = FIRST_MESSAGE.exec(text);
    if (match === null) return MALFORMED;
    const [, flag, identity, bare, escapedUser, clientNonce] = match;
    const user = unescapeName(escapedUser!);
    if (user === undefined) return MALFORMED;
    if (identity !== undefined && unescapeName(identity) !== user) {
      return {
        kind: "failed",
        message: "Authentication failed: acting as another is not allowed.",
      };
    }
    found = credentials.findScram(user, mechanism);
    const nonce = clientNonce! + randomBytes(NONCE_BYTES).toString("base64");
    const salt =
      found?.credential.salt ?? hmac("sha256", fakeSaltKey, `${mechanism}:${user}`).subarray(0, 16);
    const iterations = found?.credential.iterations ?? ITERATIONS_DEFAULT;
    const serverFirst = `r=${nonce},s=${salt.toString("base64")},i=${iterations}`;
    const header = text.slice(0, text.length - bare!.length);
    first = { bare: bare!, header, clientNonce: clientNonce!, nonce, serverFirst };
    return flag === undefined ? MALFORMED : { kind: "continue", bytes: Buffer.from(serverFirst) };
  }

  async function takeFinal(text: string, before: FirstMessages): Promise<SaslStep> {
    const match = FINAL_MESSAGE.exec(text);
    if (match === null) return MALFORMED;
    const [, withoutProof, binding, nonce, proofText] = match;
    // librdkafka before 2.6.1 prefixes its own nonce again to the server's nonce, which already begins with it.
    const isOwn = nonce === before.nonce || nonce === before.clientNonce + before.nonce;
    if (!isOwn || Buffer.from(binding!, "base64").toString() !== before.header) return MALFORMED;
    const proof = Buffer.from(proofText!, "base64");
    const authMessage = `${before.bare},${before.serverFirst},${withoutProof}`;
    if (found === undefined || proof.length !== DIGEST_BYTES[mechanism]) {
      return { kind: "failed", message: AUTHENTICATION_FAILED };
    }
    const { storedKey, serverKey } = found.credential;
    const signature = hmac(digest, storedKey, authMessage);
    const clientKey = Buffer.from(proof.map((byte, index) => byte ^ signature[index]!));
    const offered = createHash(digest).update(clientKey).digest();
    if (!timingSafeEqual(offered, storedKey)) {
      return { kind: "failed", message: AUTHENTICATION_FAILED };
    }
    const verifier = hmac(digest, serverKey, authMessage).toString("base64");
    return { kind: "done", bytes: Buffer.from(`v=${verifier}`), principal: found.principal };
  }

  return {
    async step(bytes) {
      if (bytes.length > MESSAGE_BYTES_MAX) return MALFORMED;
      const text = bytes.toString("utf8");
      return first === undefined ? takeFirst(text) : takeFinal(text, first);
    },
  };
}

const MALFORMED: SaslStep = {
  kind: "failed",
  message: "Authentication failed: the SCRAM message is malformed.",
};

function hmac(digest: string, key: Buffer, text: string): Buffer {
  return createHmac(digest, key).update(text).digest();
}

/** `=2C` and `=3D` stand for comma and equals sign; any other `=` is an error (RFC 5802, 5.1). */
function unescapeName(text: string): string | undefined {
  if (/=(?!2C|3D)/.test(text)) return undefined;
  return text.replaceAll("=2C", ",").replaceAll("=3D", "=");
}
