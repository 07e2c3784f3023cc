// Versions and delete markers in listings.
import type { Retention } from "./lock.ts";
import type { ListedObject, ListPosition } from "./object.ts";

/** A version, or a delete marker (its size is 0 and its ETag empty). */
export interface ListedVersion extends ListedObject {
  /** `null` for the null version. */
  versionId: string;
  isLatest: boolean;
  isDeleteMarker: boolean;
  retention?: Retention;
  legalHold?: true;
}

/** The position to continue from: after one version of a key, after the key, or after a common prefix. */
export interface VersionPosition extends ListPosition {
  versionId?: string;
}

/** A listing by key, newest version first. */
export interface ListVersionsRequest {
  bucket: string;
  prefix?: string;
  delimiter?: string;
  after?: VersionPosition;
  /** Versions, markers and common prefixes together, 0 to 1 000. Default 1 000. */
  maxKeys?: number;
}

export interface ListVersionsResult {
  versions: ListedVersion[];
  commonPrefixes: string[];
  isTruncated: boolean;
  next?: VersionPosition;
}
