// Encryption of backups with a passphrase.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { BackupError } from "./error.ts";

/*
 * A master key is derived from the passphrase by scrypt (RFC 7914), and from it by HKDF (RFC 5869) one key for each file,
 * with a random salt and the path of the file: files cannot be exchanged. A file is encrypted in pieces (the STREAM
 * construction of Hoang, Reyhanitabar, Rogaway and Vizár, 2015), so that it is verified in constant memory:
 *
 *   file  = "PLATFENC" │ salt 16 │ piece │ piece │ … │ last piece
 *   piece = up to 1 MiB, encrypted │ tag 16              AES-256-GCM
 *   nonce = number of the piece u88 │ 1 in the last piece, otherwise 0
 *
 * All pieces except the last one are full. The list of the files is authenticated by `mac`.
 */

const MAGIC = Buffer.from("PLATFENC", "latin1");
/** Bytes of a salt. */
export const SALT_BYTES = 16;
const HEAD_BYTES = MAGIC.length + SALT_BYTES;
const PIECE_BYTES = 1024 * 1024;
const TAG_BYTES = 16;
/** Bytes of a key, and of a MAC. */
export const KEY_BYTES = 32;
/** 128 MiB and about half a second (OWASP Password Storage Cheat Sheet). */
export const SCRYPT_COST = 2 ** 17;
/** The block size of scrypt. */
export const SCRYPT_BLOCK = 8;
const SCRYPT_MEMORY_BYTES_MAX = 256 * 1024 * 1024;
/** Minimum length of a passphrase in characters. */
const PASSPHRASE_LENGTH_MIN = 12;

/** Parameters of an encrypted backup: the manifest's member `encryption`. Bytes are in hex. */
export interface BackupEncryption {
  cipher: "aes-256-gcm-stream";
  kdf: "scrypt";
  cost: typeof SCRYPT_COST;
  block_size: typeof SCRYPT_BLOCK;
  salt: string;
  /** Tells a wrong passphrase from a changed backup. */
  check: string;
  /** HMAC-SHA-256 of the manifest with an empty `mac`. */
  mac: string;
}

/** The parts of a key, for other threads of this process. */
export interface SharedKey {
  readonly salt: Uint8Array;
  readonly master: Uint8Array;
}

/** The key of one encrypted backup. */
export class BackupKey {
  readonly #salt: Buffer;
  readonly #master: Buffer;

  private constructor(salt: Buffer, master: Buffer) {
    this.#salt = salt;
    this.#master = master;
  }

  /** Derives a key for a new backup. Rejects with BackupError if the passphrase is too short. */
  static async create(passphrase: string): Promise<BackupKey> {
    if (passphrase.length < PASSPHRASE_LENGTH_MIN) {
      throw new BackupError(
        `the passphrase must have at least ${PASSPHRASE_LENGTH_MIN} characters`,
      );
    }
    const salt = randomBytes(SALT_BYTES);
    return new BackupKey(salt, await deriveMaster(passphrase, salt));
  }

  /** Derives the key of an existing backup. Rejects with BackupError if the passphrase is wrong. */
  static async open(passphrase: string, encryption: BackupEncryption): Promise<BackupKey> {
    const salt = Buffer.from(encryption.salt, "hex");
    const key = new BackupKey(salt, await deriveMaster(passphrase, salt));
    if (!isEqual(encryption.check, key.#derive("check"))) {
      throw new BackupError("the passphrase is wrong");
    }
    return key;
  }

  /** The key that another thread has shared. */
  static receive({ salt, master }: SharedKey): BackupKey {
    return new BackupKey(Buffer.from(salt), Buffer.from(master));
  }

  /** The key for another thread. */
  share(): SharedKey {
    return { salt: this.#salt, master: this.#master };
  }

  /** Adds the member `encryption` to a manifest, before its files. */
  seal<Manifest extends { files: unknown[] }>(
    manifest: Manifest,
  ): Manifest & { encryption: BackupEncryption } {
    const { files, ...rest } = manifest;
    const encryption: BackupEncryption = {
      cipher: "aes-256-gcm-stream",
      kdf: "scrypt",
      cost: SCRYPT_COST,
      block_size: SCRYPT_BLOCK,
      salt: this.#salt.toString("hex"),
      check: this.#derive("check").toString("hex"),
      mac: "",
    };
    const mac = this.#authenticate({ ...rest, encryption, files }).toString("hex");
    // TypeScript does not see that a rest and its members are the whole.
    return { ...rest, encryption: { ...encryption, mac }, files } as Manifest & {
      encryption: BackupEncryption;
    };
  }

  /** Throws BackupError if a manifest was changed by someone without the passphrase. */
  requireSealed(manifest: { encryption: BackupEncryption }, place: string): void {
    const unsealed = { ...manifest, encryption: { ...manifest.encryption, mac: "" } };
    if (isEqual(manifest.encryption.mac, this.#authenticate(unsealed))) return;
    throw new BackupError(`${place}: the manifest was changed by someone without the passphrase`);
  }

  /** Encrypts the contents of the file at `path`. */
  async *encrypt(path: string, contents: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
    const salt = randomBytes(SALT_BYTES);
    const key = this.#deriveFileKey(path, salt);
    yield Buffer.concat([MAGIC, salt]);
    let number = 0;
    for await (const { bytes, isLast } of cutPieces(contents, PIECE_BYTES)) {
      const cipher = createCipheriv("aes-256-gcm", key, encodeNonce(number++, isLast));
      yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
    }
  }

  /** Decrypts the contents of the file at `path`. Throws BackupError if they are damaged. */
  async *decrypt(path: string, stored: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
    let key: Buffer | undefined;
    let number = 0;
    for await (const { bytes, isLast } of cutPieces(stored, PIECE_BYTES + TAG_BYTES, HEAD_BYTES)) {
      if (key === undefined) {
        key = this.#deriveFileKey(path, readSalt(path, bytes));
        continue;
      }
      yield decryptPiece(key, encodeNonce(number++, isLast), bytes, path);
    }
    if (number === 0) throw damaged(path);
  }

  #deriveFileKey(path: string, salt: Buffer): Buffer {
    const info = `platform backup file\0${path}`;
    return Buffer.from(hkdfSync("sha256", this.#master, salt, info, KEY_BYTES));
  }

  #derive(use: "check" | "manifest"): Buffer {
    return Buffer.from(
      hkdfSync("sha256", this.#master, this.#salt, `platform backup ${use}`, KEY_BYTES),
    );
  }

  #authenticate(manifest: object): Buffer {
    return createHmac("sha256", this.#derive("manifest")).update(JSON.stringify(manifest)).digest();
  }
}

function deriveMaster(passphrase: string, salt: Buffer): Promise<Buffer> {
  const cost = { N: SCRYPT_COST, r: SCRYPT_BLOCK, p: 1, maxmem: SCRYPT_MEMORY_BYTES_MAX };
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize("NFC"), salt, KEY_BYTES, cost, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}

// Cuts a stream into pieces of `size` bytes, after a first one of `headSize`; the last one is shorter or empty.
async function* cutPieces(
  stream: AsyncIterable<Uint8Array>,
  size: number,
  headSize = 0,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let held: Buffer[] = [];
  let length = 0;
  let wanted = headSize > 0 ? headSize : size;
  for await (const bytes of stream) {
    // The stream may use its buffer again.
    held.push(Buffer.from(bytes));
    length += bytes.length;
    // A full piece is last only if nothing follows it.
    while (length > wanted) {
      const joined = Buffer.concat(held);
      yield { bytes: joined.subarray(0, wanted), isLast: false };
      held = [joined.subarray(wanted)];
      length -= wanted;
      wanted = size;
    }
  }
  yield { bytes: Buffer.concat(held), isLast: true };
}

function decryptPiece(key: Buffer, nonce: Buffer, bytes: Buffer, path: string): Buffer {
  if (bytes.length < TAG_BYTES) throw damaged(path);
  const cipher = createDecipheriv("aes-256-gcm", key, nonce);
  const end = bytes.length - TAG_BYTES;
  cipher.setAuthTag(bytes.subarray(end));
  const opened = cipher.update(bytes.subarray(0, end));
  try {
    cipher.final();
  } catch (cause) {
    throw damaged(path, { cause });
  }
  return opened;
}

function readSalt(path: string, head: Buffer): Buffer {
  const isHead = head.length === HEAD_BYTES && head.subarray(0, MAGIC.length).equals(MAGIC);
  if (!isHead) throw damaged(path);
  return head.subarray(MAGIC.length);
}

function encodeNonce(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number), 3);
  nonce.writeUInt8(isLast ? 1 : 0, 11);
  return nonce;
}

function isEqual(stored: string, expected: Buffer): boolean {
  const bytes = Buffer.from(stored, "hex");
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

function damaged(path: string, options?: ErrorOptions): BackupError {
  return new BackupError(`${path}: cannot be decrypted; the file is damaged`, options);
}
