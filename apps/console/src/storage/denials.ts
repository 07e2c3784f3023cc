// Operations on an object that the policies of storage deny the session: their buttons are disabled, with the missing action.
import { withQuery } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { useLoad } from "../view/load.ts";
import { t } from "../words/words.ts";
import { bucketPath } from "./objects.ts";

type Operation =
  | "read_version"
  | "write"
  | "delete"
  | "delete_version"
  | "tags"
  | "retention"
  | "legal_hold";

/** The reason for which an operation is disabled; undefined if it is allowed, or not known to be denied. */
export type FindDenial = (operation: Operation) => string | undefined;

/** Loads the permissions for an object or a version. */
export function useObjectPermissions(
  bucket: string,
  key: string,
  version: string | undefined,
): FindDenial {
  const loaded = useLoad(`permissions ${key} ${version ?? ""}`, (signal) => {
    const path = withQuery(bucketPath(bucket, "/object/permissions"), { key, version });
    return callService<{ denied: Partial<Record<Operation, string>> }>("vault", path, { signal });
  });
  const denied = loaded.data.value?.denied ?? {};
  return (operation) => {
    const action = denied[operation];
    return action === undefined ? undefined : t("No policy allows {action} here", { action });
  };
}
