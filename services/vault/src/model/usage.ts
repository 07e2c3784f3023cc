// Usage and quota of a bucket.

/** The contents of a bucket. */
export interface BucketUsage {
  /** Live objects. */
  objects: number;
  /** Live objects and noncurrent versions, without delete markers. */
  versions: number;
  deleteMarkers: number;
  /** Bytes of all versions. */
  bytes: number;
  /** Multipart uploads in progress. */
  uploads: number;
  /** Bytes of their parts. */
  uploadBytes: number;
}

/** Limits of a bucket; at least one is set. */
export interface BucketQuota {
  /** Bytes of all versions and of the parts of uploads in progress. */
  bytesMax?: number;
  /** Versions, without delete markers: live objects in buckets without versioning. */
  objectsMax?: number;
}
