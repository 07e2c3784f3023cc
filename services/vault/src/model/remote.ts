// Other S3 stores that bodies are moved to.

/** A registered store without its secret key. */
export interface RemoteSettings {
  readonly name: string;
  /** `http://` or `https://`, host and optional port. */
  readonly endpoint: string;
  readonly region: string;
  readonly access_key: string;
  readonly path_style: boolean;
  /** Certificates (PEM) of trusted authorities: a path on this machine. */
  readonly ca_file?: string;
  /** Put before all keys there. */
  readonly prefix: string;
  /** Names of buckets here that may use it, with `*`; root may always. */
  readonly allow: readonly string[];
  /** Bytes per second of moves and restores; 0 is no limit. */
  readonly rate_bytes: number;
  /** Storage classes of lifecycle rules whose objects go there, to `bucket`. */
  readonly classes: readonly string[];
  readonly bucket?: string;
}

/** As stored: the secret key is sealed with the master key. */
export interface RemoteDocument extends RemoteSettings {
  readonly sealed: string;
}

/** Seals secrets with the master key; `name` is authenticated. */
export interface SecretSealer {
  seal(text: string, name: string): string;
  /** Throws if the master key is another one. */
  open(sealed: string, name: string): string;
  /** The secret sealed with the current key; `undefined` if it is already. */
  renew?(sealed: string, name: string): string | undefined;
}

/** A requested restore of a version, or its end (epoch ms) once the local copy is complete. */
export interface RestoreMark {
  readonly days: number;
  readonly untilMs?: number;
}

/** Counts of a remote. */
export interface RemoteUsage {
  readonly name: string;
  readonly blobs: number;
  readonly bytes: number;
}

/** The target of moved objects. */
export interface TierTarget {
  readonly remote: string;
  readonly bucket: string;
  /** The storage class that moved objects have. */
  readonly storageClass: string;
}
