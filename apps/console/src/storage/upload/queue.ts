// The uploads of this page. They continue while other views of the console are open.
import { signal } from "@preact/signals";
import { Slots } from "./slots.ts";
import { Upload } from "./upload.ts";

/** Requests at the same time, of all uploads together. */
const SLOTS = 4;
const UPLOADS_MAX = 10_000;
const slots = new Slots(SLOTS);

/** All uploads until they are removed, the first one first. */
export const uploads = signal<readonly Upload[]>([]);
/** Objects that uploads have written; lists load again when it changes. */
export const writes = signal(0);

/** A file and the key that it will have. */
export interface NamedFile {
  key: string;
  file: File;
}

/** Starts uploads; returns how many files are beyond the limit of 10 000. */
export function addUploads(
  bucket: string,
  files: readonly NamedFile[],
  hasVersions: boolean,
): number {
  const accepted = files.slice(0, UPLOADS_MAX - uploads.value.length);
  const added = accepted.map(({ key, file }) => {
    const onDone = (): void => void (writes.value += 1);
    return new Upload({ bucket, key, file, hasVersions, slots, onDone });
  });
  uploads.value = [...uploads.value, ...added];
  for (const upload of added) void upload.run();
  return files.length - accepted.length;
}

/** Removes uploads that have ended from the list. */
export function removeEnded(): void {
  uploads.value = uploads.value.filter(({ state }) => !hasEnded(state.value.kind));
}

/** Stops an upload and removes it. */
export async function cancelUpload(upload: Upload): Promise<void> {
  uploads.value = uploads.value.filter((one) => one !== upload);
  await upload.cancel();
}

function hasEnded(kind: string): boolean {
  return kind === "done" || kind === "cancelled";
}

addEventListener("beforeunload", (event) => {
  if (uploads.value.some((upload) => upload.isActive)) event.preventDefault();
});
