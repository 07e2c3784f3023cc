// Encryption of push messages: one aes128gcm record (RFC 8188) with the keys of RFC 8291.
import { createCipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";

/** Keys of a subscription, as bytes. */
export interface PushKeys {
  /** Public key of the browser, an uncompressed point of P-256. */
  p256dh: Buffer;
  /** Authentication secret. */
  auth: Buffer;
}

/** Random values of an encryption; tests choose them. */
export interface PushRandom {
  privateKey: Buffer;
  salt: Buffer;
}

/** Maximum size of a plaintext: push services accept messages of 4 096 bytes (RFC 8030 section 7.2). */
export const PUSH_BYTES_MAX = 3_993;

const RECORD_BYTES = 4_096;
const SALT_BYTES = 16;
const LAST_RECORD = 2;

/** Encrypts a message. Throws if the browser's key is not a point of the curve. */
export function encryptPush(
  plaintext: Uint8Array,
  { p256dh, auth }: PushKeys,
  random?: PushRandom,
): Buffer {
  const ecdh = createECDH("prime256v1");
  if (random === undefined) ecdh.generateKeys();
  else ecdh.setPrivateKey(random.privateKey);
  const salt = random?.salt ?? randomBytes(SALT_BYTES);
  const publicKey = ecdh.getPublicKey();
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), p256dh, publicKey]);
  const secret = derive(ecdh.computeSecret(p256dh), auth, info, 32);
  const key = derive(secret, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = derive(secret, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
  const head = Buffer.alloc(SALT_BYTES + 5);
  salt.copy(head);
  head.writeUInt32BE(RECORD_BYTES, SALT_BYTES);
  head.writeUInt8(publicKey.length, SALT_BYTES + 4);
  const cipher = createCipheriv("aes-128-gcm", key, nonce);
  const sealed = [
    cipher.update(plaintext),
    cipher.update(Buffer.from([LAST_RECORD])),
    cipher.final(),
  ];
  return Buffer.concat([head, publicKey, ...sealed, cipher.getAuthTag()]);
}

function derive(secret: Buffer, salt: Buffer, info: Buffer, bytes: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, salt, info, bytes));
}
