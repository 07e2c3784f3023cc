// Federation: buckets whose names begin with a prefix are those of a remote.

/** A rule as it is stored. */
export interface FederationRule {
  readonly id: string;
  readonly prefix: string;
  readonly remote: string;
  /** Time of its addition, epoch ms. */
  readonly createdMs: number;
}

/** Begins the names of remotes that belong to one rule; people cannot choose such a name. */
export const FEDERATION_REMOTE = "federation.";
