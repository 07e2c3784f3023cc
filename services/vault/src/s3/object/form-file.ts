// Streams the file of a form into the store, which requires the length of a body before its first byte.
import type { BodyDigests, PutResult, Upload } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";

/** Size up to which a file is held until its end. */
const HELD_BYTES_MAX = 16 * 1024 ** 2;
/** Bytes that may follow a file that is held. */
const FOLLOWING_BYTES_MAX = 1024 ** 2;

/** Options of a form's file. */
export interface FormFileOptions {
  /** The length of the file if nothing follows it, which is its maximum; `undefined` if unknown. */
  readonly bytesMax: number | undefined;
  /** Starts the put of a body with a length. Throws if the length is not allowed. */
  readonly begin: (bytes: number) => Upload<PutResult>;
  /** Takes memory for bytes. A promise waits for room, and rejects if there is none in time. */
  readonly hold: (bytes: number) => Promise<void> | undefined;
  /** Releases all of its memory. */
  readonly release: () => void;
  /** Checks the number of bytes received so far. Throws if there are too many. */
  readonly checkSoFar: (bytes: number) => void;
}

/**
 * A small file is held until its length is known, because other fields may follow it. A larger one is stored as it arrives,
 * and must have the length that the form's own length implies for a last part. If the form's length shows immediately that
 * the file is large, it is never held.
 */
export class FormFile {
  readonly #options: FormFileOptions;
  readonly #held: Buffer[];
  #bytes: number;
  #declared = 0;
  #upload: Upload<PutResult> | undefined;

  /** `first` contains the bytes received so far. */
  constructor(options: FormFileOptions, first: readonly Buffer[]) {
    this.#options = options;
    this.#held = [...first];
    this.#bytes = first.reduce((sum, piece) => sum + piece.length, 0);
    options.checkSoFar(this.#bytes);
  }

  /** Takes the memory that the file may need, or starts to store it. A promise delays the client. */
  start(): Promise<void> | undefined {
    const { bytesMax = HELD_BYTES_MAX } = this.#options;
    if (bytesMax > HELD_BYTES_MAX + FOLLOWING_BYTES_MAX) return this.#write(this.#begin(bytesMax));
    return this.#options.hold(Math.max(0, Math.min(bytesMax, HELD_BYTES_MAX)));
  }

  /** Adds the next bytes; the buffer must not change afterwards. */
  add(data: Buffer): void {
    this.#bytes += data.length;
    this.#options.checkSoFar(this.#bytes);
    if (this.#upload !== undefined && this.#bytes > this.#declared) throw notLast();
    this.#held.push(data);
  }

  /** Passes on the received bytes if they exceed the held size. A promise delays the client. */
  pass(): Promise<void> | undefined {
    if (this.#upload !== undefined) return this.#write(this.#upload);
    if (this.#bytes <= HELD_BYTES_MAX) return undefined;
    if (this.#options.bytesMax === undefined) throw new S3Error("MissingContentLength");
    return this.#write(this.#begin(this.#options.bytesMax));
  }

  /** The file is complete: it becomes the object after `check` has accepted its digests. */
  async commit(check: (digests: BodyDigests, bytes: number) => void): Promise<PutResult> {
    const upload = this.#upload ?? this.#begin(this.#bytes);
    if (this.#bytes !== this.#declared) throw notLast();
    await this.#write(upload);
    check(await upload.finish(), this.#bytes);
    return upload.commit();
  }

  /** Drops the file. Harmless at any time. */
  async abort(): Promise<void> {
    await this.#upload?.abort();
  }

  #begin(bytes: number): Upload<PutResult> {
    if (this.#bytes > bytes) throw notLast();
    this.#declared = bytes;
    this.#upload = this.#options.begin(bytes);
    return this.#upload;
  }

  async #write(upload: Upload<PutResult>): Promise<void> {
    for (const piece of this.#held.splice(0)) await upload.write(piece);
    this.#options.release();
  }
}

function notLast(): S3Error {
  return new S3Error(
    "MalformedPOSTRequest",
    `A file of more than ${HELD_BYTES_MAX} bytes must be the last part of its form, and no more than ${FOLLOWING_BYTES_MAX} bytes may follow a smaller one.`,
  );
}
