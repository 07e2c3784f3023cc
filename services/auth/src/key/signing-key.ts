// A signing key: generated or parsed, identified by its thumbprint.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  hash,
  sign,
  type KeyObject,
  type SignKeyObjectInput,
  type webcrypto,
} from "node:crypto";
import { promisify } from "node:util";
import type { SigningAlgorithm } from "../database/key.ts";

const RSA_BITS = 2048;
const RSA_BITS_MAX = 8192;
const makePair = promisify(generateKeyPair);
const signInPool = promisify<string, Uint8Array, KeyObject, Buffer>(sign);

/** A public key in the key set (RFC 7517). */
export type PublicJwk = webcrypto.JsonWebKey & {
  kid: string;
  alg: SigningAlgorithm;
  use: "sig";
};

/** A key pair in memory. */
export interface SigningKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicKey: KeyObject;
  readonly publicJwk: PublicJwk;
  /** PKCS #8 PEM. */
  readonly pem: string;
  /** The JWS signature of the bytes (RFC 7518 section 3). */
  sign(data: Uint8Array): Buffer | Promise<Buffer>;
}

/** Generates a key pair. */
export async function generateSigningKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  const { privateKey } =
    algorithm === "RS256"
      ? await makePair("rsa", { modulusLength: RSA_BITS })
      : await makePair("ec", { namedCurve: "P-256" });
  return buildSigningKey(privateKey, algorithm);
}

/** Parses a private key in PEM. Throws if it does not fit the algorithm. */
export function readSigningKey(pem: string, algorithm: SigningAlgorithm): SigningKey {
  return buildSigningKey(createPrivateKey(pem), algorithm);
}

function buildSigningKey(privateKey: KeyObject, algorithm: SigningAlgorithm): SigningKey {
  const details = privateKey.asymmetricKeyDetails;
  const bits = details?.modulusLength ?? 0;
  const fits =
    algorithm === "RS256"
      ? privateKey.asymmetricKeyType === "rsa" && bits >= RSA_BITS && bits <= RSA_BITS_MAX
      : privateKey.asymmetricKeyType === "ec" && details?.namedCurve === "prime256v1";
  if (!fits) {
    throw new TypeError(
      algorithm === "RS256"
        ? `an RS256 key is RSA of ${RSA_BITS} to ${RSA_BITS_MAX} bits`
        : "an ES256 key is EC on P-256",
    );
  }
  const publicKey = createPublicKey(privateKey);
  const jwk = publicKey.export({ format: "jwk" });
  const kid = thumbprint(jwk);
  return {
    kid,
    algorithm,
    publicKey,
    publicJwk: { ...jwk, kid, alg: algorithm, use: "sig" },
    pem: privateKey.export({ type: "pkcs8", format: "pem" }),
    sign: createSign(privateKey, algorithm),
  };
}

// An ES256 signature takes less time than the transfer to the thread pool; an RSA signature takes thirty times as
// long.
function createSign(privateKey: KeyObject, algorithm: SigningAlgorithm): SigningKey["sign"] {
  if (algorithm === "RS256") return (data) => signInPool("sha256", data, privateKey);
  const key: SignKeyObjectInput = { key: privateKey, dsaEncoding: "ieee-p1363" };
  return (data) => sign("sha256", data, key);
}

// RFC 7638 section 3: the required members only, sorted by name.
function thumbprint(jwk: webcrypto.JsonWebKey): string {
  const { kty, crv, x, y, e, n } = jwk;
  const members = kty === "RSA" ? { e, kty, n } : { crv, kty, x, y };
  return hash("sha256", JSON.stringify(members), "base64url");
}
