// The file of a form on its way into the store, which wants to know a body's length before its first byte.
import type { BodyDigests, PutResult, Upload } from "../../store.ts";
import { S3Error } from "../../wire/error.ts";

/** Bytes of a file that are held until its end has come. */
const HELD_BYTES_MAX = 16 * 1024 ** 2;

/** What a form's file needs to become an object. */
export interface FormFileOptions {
  /** How long a file of more than is held will be; throws where nobody can tell. */
  readonly predictBytes: () => number;
  /** Begins the put of so many bytes; throws where they may not be so many. */
  readonly begin: (bytes: number) => Upload<PutResult>;
  /** Takes memory for bytes; throws where there is none. */
  readonly hold: (bytes: number) => void;
  /** Gives it back, all of it. */
  readonly release: () => void;
  /** Looks at the bytes that have come so far; throws where they are too many. */
  readonly checkSoFar: (bytes: number) => void;
}

/**
 * A small file is held until it is known how long it is, since other fields may follow it. A larger one is stored as it
 * comes, and has to be as long as the form's own length says of a last part.
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
    options.hold(this.#bytes);
  }

  /** Takes the next bytes, which must stay as they are. */
  add(data: Buffer): void {
    this.#bytes += data.length;
    this.#options.checkSoFar(this.#bytes);
    if (this.#upload !== undefined && this.#bytes > this.#declared) throw notLast();
    this.#options.hold(data.length);
    this.#held.push(data);
  }

  /** Hands on what has come, where that is more than is held. A promise holds the client back. */
  pass(): Promise<void> | undefined {
    if (this.#bytes <= HELD_BYTES_MAX) return undefined;
    return this.#write(this.#upload ?? this.#begin(this.#options.predictBytes()));
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
    `A file of more than ${HELD_BYTES_MAX} bytes must be the last part of its form.`,
  );
}
