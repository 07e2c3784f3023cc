// The file of a form on its way into the store, which wants to know a body's length before its first byte.
import type { BodyDigests, PutResult, Upload } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";

/** Bytes of a file that are held until its end has come. */
const HELD_BYTES_MAX = 16 * 1024 ** 2;
/** What may follow a file that is held. */
const FOLLOWING_BYTES_MAX = 1024 ** 2;

/** What a form's file needs to become an object. */
export interface FormFileOptions {
  /** How long the file is if nothing follows it, which is the most that it can have; undefined where nobody can tell. */
  readonly bytesMax: number | undefined;
  /** Begins the put of so many bytes; throws where they may not be so many. */
  readonly begin: (bytes: number) => Upload<PutResult>;
  /** Takes memory for bytes. A promise is a wait for room, and rejects where there is none in time. */
  readonly hold: (bytes: number) => Promise<void> | undefined;
  /** Gives it back, all of it. */
  readonly release: () => void;
  /** Looks at the bytes that have come so far; throws where they are too many. */
  readonly checkSoFar: (bytes: number) => void;
}

/**
 * A small file is held until it is known how long it is, since other fields may follow it. A larger one is stored as it
 * comes, and has to be as long as the form's own length says of a last part. Where the form's length shows at once that
 * the file is large, nothing of it is held.
 */
export class FormFile {
  readonly #options: FormFileOptions;
  readonly #held: Buffer[];
  #bytes: number;
  #declared = 0;
  #upload: Upload<PutResult> | undefined;

  /** `first` is what has come of the file already. */
  constructor(options: FormFileOptions, first: readonly Buffer[]) {
    this.#options = options;
    this.#held = [...first];
    this.#bytes = first.reduce((sum, piece) => sum + piece.length, 0);
    options.checkSoFar(this.#bytes);
  }

  /** Takes the memory that the file may need, or begins to store it. A promise holds the client back. */
  start(): Promise<void> | undefined {
    const { bytesMax = HELD_BYTES_MAX } = this.#options;
    if (bytesMax > HELD_BYTES_MAX + FOLLOWING_BYTES_MAX) return this.#write(this.#begin(bytesMax));
    return this.#options.hold(Math.max(0, Math.min(bytesMax, HELD_BYTES_MAX)));
  }

  /** Takes the next bytes, which must stay as they are. */
  add(data: Buffer): void {
    this.#bytes += data.length;
    this.#options.checkSoFar(this.#bytes);
    if (this.#upload !== undefined && this.#bytes > this.#declared) throw notLast();
    this.#held.push(data);
  }

  /** Hands on what has come, where that is more than is held. A promise holds the client back. */
  pass(): Promise<void> | undefined {
    if (this.#upload !== undefined) return this.#write(this.#upload);
    if (this.#bytes <= HELD_BYTES_MAX) return undefined;
    if (this.#options.bytesMax === undefined) throw new S3Error("MissingContentLength");
    return this.#write(this.#begin(this.#options.bytesMax));
  }

  /** The file has ended: it becomes the object once `check` has seen its digests. */
  async commit(check: (digests: BodyDigests, bytes: number) => void): Promise<PutResult> {
    const upload = this.#upload ?? this.#begin(this.#bytes);
    if (this.#bytes !== this.#declared) throw notLast();
    await this.#write(upload);
    check(await upload.finish(), this.#bytes);
    return upload.commit();
  }

  /** Forgets the file. Harmless at any time. */
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
