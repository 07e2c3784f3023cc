// Sources of the configuration as the API shows them.

/** Kinds of sources. */
type SourceKind = "secret_service" | "bucket" | "discovery" | "git";

/** State of one source. */
export interface SourceView {
  kind: SourceKind;
  /** Address without credentials. */
  address: string;
  /** Version in use, in the words of the source; "" before the first one. */
  version: string;
  /** Time of the last successful read, ms since 1970; undefined before it. */
  readAtMs: number | undefined;
  /** Fault of the last attempt; undefined if it was successful. */
  error: string | undefined;
}
