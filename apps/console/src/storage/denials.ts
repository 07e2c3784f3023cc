// Operations that the policies of storage deny the session: their buttons are disabled, with the missing action.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { useLoad } from "../view/load.ts";
import { t } from "../words/words.ts";
import { bucketPath } from "./objects.ts";

type ObjectOperation =
  | "read_version"
  | "write"
  | "delete"
  | "delete_version"
  | "tags"
  | "retention"
  | "legal_hold";

/** The reason for which an operation is disabled; undefined if it is allowed, or not known to be denied. */
export type FindDenial<Operation extends string = ObjectOperation> = (
  operation: Operation,
) => string | undefined;

/** Loads the denials for an object or a version. */
export function useObjectDenials(
  bucket: string,
  key: string,
  version: string | undefined,
): FindDenial {
  return useDenials(withQuery(bucketPath(bucket, "/object/permissions"), { key, version }));
}

/** Loads the denials for a bucket: `delete`, and changes of settings by their names. */
export function useBucketDenials(bucket: string): FindDenial<string> {
  return useDenials(bucketPath(bucket, "/permissions"));
}

function useDenials(path: string): FindDenial<string> {
  const loaded = useLoad(path, (signal) =>
    callService<Answer<"vault", "GET /buckets/{bucket}/permissions">>("vault", path, { signal }),
  );
  const denied = loaded.data.value?.denied ?? {};
  return (operation) => {
    const action = denied[operation];
    return action === undefined ? undefined : t("No policy allows {action} here", { action });
  };
}
