// The answer for a file, from a folder or from an executable.

/** The answer for a file. */
export interface FileAnswer {
  readonly status: number;
  /** Fields without Content-Length. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Undefined for a status without content. `close` must be called, also if nothing is read. */
  readonly content?: {
    readonly length: number;
    readonly read: () => AsyncIterable<Uint8Array>;
    readonly close: () => Promise<void>;
  };
}

/** Wraps a file, so that it is not mistaken for an object; the server closes it. */
export class FileResult {
  readonly answer: FileAnswer;

  constructor(answer: FileAnswer) {
    this.answer = answer;
  }
}
