// Deletes chosen objects and folders: counts what will be gone, then deletes a thousand at a time.
import { useEffect, useState } from "preact/hooks";
import { ApiFailure } from "../api/api.ts";
import { formatBytes, formatNumber } from "../format/format.ts";
import { ConfirmDialog } from "../view/dialog.tsx";
import { toFailure } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { ListRow } from "./listing.ts";
import { deleteObjects, listObjects } from "./objects.ts";

const BATCH = 1_000;
/** Objects that one dialog deletes; beyond them lifecycle rules do it. */
const OBJECTS_MAX = 100_000;

interface Found {
  keys: string[];
  bytes: number;
  isCapped: boolean;
}

export function DeleteObjects(props: {
  bucket: string;
  rows: readonly ListRow[];
  keepsVersions: boolean;
  onClose: () => void;
  onDone: () => void;
}) {
  const { bucket, rows, keepsVersions } = props;
  const [found, setFound] = useState<Found | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [done, setDone] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    count(bucket, rows, stop.signal).then(setFound, (error: unknown) => {
      if (!stop.signal.aborted) setFailure(toFailure(error));
    });
    return () => stop.abort();
  }, []);
  const remove = async (): Promise<void> => {
    if (found === undefined) return;
    for (let at = 0; at < found.keys.length; at += BATCH) {
      const batch = found.keys.slice(at, at + BATCH).map((key) => ({ key }));
      const [error] = await deleteObjects(bucket, batch);
      if (error !== undefined) {
        props.onDone();
        throw new ApiFailure(409, { detail: `${error.key}: ${error.message}` });
      }
      setDone(at + batch.length);
    }
    say(t("{n} objects deleted.", { n: formatNumber(found.keys.length) }));
    props.onDone();
  };
  return (
    <ConfirmDialog
      title={t("Delete objects of {name}", { name: bucket })}
      name={bucket}
      submit={t("Delete")}
      isDisabled={found === undefined}
      onClose={props.onClose}
      onSubmit={remove}
    >
      {failure !== undefined && <Problem failure={failure} />}
      {found === undefined ? (
        failure === undefined && <p role="status">{t("Counting …")}</p>
      ) : (
        <p>
          <b>
            {t("{n} objects, {size}", {
              n: formatNumber(found.keys.length),
              size: formatBytes(found.bytes),
            })}
          </b>{" "}
          {keepsVersions
            ? t("get a delete marker; their versions remain and can be restored.")
            : t("will be gone for good: the bucket keeps no versions.")}
        </p>
      )}
      {found?.isCapped === true && (
        <p>
          {t("There are more: 100 000 are deleted at a time; a lifecycle rule deletes the rest.")}
        </p>
      )}
      {done > 0 && <p role="status">{t("{n} deleted …", { n: formatNumber(done) })}</p>}
    </ConfirmDialog>
  );
}

async function count(
  bucket: string,
  rows: readonly ListRow[],
  signal: AbortSignal,
): Promise<Found> {
  const found: Found = { keys: [], bytes: 0, isCapped: false };
  for (const row of rows) {
    if (row.kind === "object") add(found, row.id, row.object.size);
    else await countFolder(bucket, row.id, found, signal);
  }
  return found;
}

async function countFolder(
  bucket: string,
  prefix: string,
  found: Found,
  signal: AbortSignal,
): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await listObjects(bucket, { prefix, cursor }, signal);
    for (const { key, size } of page.items) add(found, key, size);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && !found.isCapped);
}

function add(found: Found, key: string, bytes: number): void {
  if (found.keys.length >= OBJECTS_MAX) {
    found.isCapped = true;
    return;
  }
  found.keys.push(key);
  found.bytes += bytes;
}
