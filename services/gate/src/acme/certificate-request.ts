// Requests for certificates (RFC 2986), and the certificates of TLS-ALPN-01 challenges (RFC 8737).
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import {
  bits,
  describeDnsName,
  encodeTagged,
  octets,
  oid,
  sequence,
  setOf,
  unsigned,
  utcTime,
  utf8,
} from "./der.ts";

/** Kind of the key of a certificate. */
export type KeyType = "p256" | "p384" | "rsa2048";

const ECDSA_SHA256 = "1.2.840.10045.4.3.2";
const ECDSA_SHA384 = "1.2.840.10045.4.3.3";
const RSA_SHA256 = "1.2.840.113549.1.1.11";
const ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31";
const DAY_MS = 86_400_000;
const NULL = Buffer.from([0x05, 0x00]);
const TRUE = Buffer.from([0x01, 0x01, 0xff]);

/** Creates the key of a certificate. */
export function createCertificateKey(type: KeyType): KeyObject {
  if (type === "rsa2048") return generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const namedCurve = type === "p384" ? "P-384" : "P-256";
  return generateKeyPairSync("ec", { namedCurve }).privateKey;
}

/** Returns a request for a certificate of a name, in DER. */
export function createRequest(key: KeyObject, publicKey: KeyObject, name: string): Buffer {
  const extensions = sequence(describeDnsName(name));
  const attribute = sequence(oid("1.2.840.113549.1.9.14"), setOf(extensions));
  const info = sequence(
    unsigned(Buffer.from([0])),
    sequence(),
    publicKey.export({ type: "spki", format: "der" }),
    encodeTagged(0xa0, attribute),
  );
  return signContent(info, key);
}

/** A certificate and its key in PEM. */
export interface ChallengeCertificate {
  certPem: string;
  keyPem: string;
}

/** Returns the self-signed certificate that answers the challenge of a name. */
export function createChallengeCertificate(
  name: string,
  keyAuthorization: string,
  nowMs: number,
): ChallengeCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const digest = createHash("sha256").update(keyAuthorization).digest();
  const subject = sequence(setOf(sequence(oid("2.5.4.3"), utf8("ACME challenge"))));
  const info = sequence(
    encodeTagged(0xa0, unsigned(Buffer.from([2]))),
    unsigned(randomBytes(16)),
    sequence(oid(ECDSA_SHA256)),
    subject,
    sequence(utcTime(nowMs - DAY_MS), utcTime(nowMs + DAY_MS)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    encodeTagged(
      0xa3,
      sequence(describeDnsName(name), sequence(oid(ACME_IDENTIFIER), TRUE, octets(octets(digest)))),
    ),
  );
  return {
    certPem: toPem(signContent(info, privateKey)),
    keyPem: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
}

function signContent(content: Buffer, key: KeyObject): Buffer {
  const isRsa = key.asymmetricKeyType === "rsa";
  const isWide = key.asymmetricKeyDetails?.namedCurve === "secp384r1";
  const signature = sign(isWide ? "sha384" : "sha256", content, key);
  const algorithm = isRsa
    ? sequence(oid(RSA_SHA256), NULL)
    : sequence(oid(isWide ? ECDSA_SHA384 : ECDSA_SHA256));
  return sequence(content, algorithm, bits(signature));
}

function toPem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
