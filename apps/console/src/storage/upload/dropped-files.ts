// Files of a drop or a file dialog, with the keys that they get below a prefix.
import type { NamedFile } from "./queue.ts";

const FILES_MAX = 10_000;

/** Files that were dropped, with those in folders. */
export async function readDrop(transfer: DataTransfer, prefix: string): Promise<NamedFile[]> {
  // Entries must be taken before the event ends.
  const entries = [...transfer.items]
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  const found: NamedFile[] = [];
  for (const entry of entries) await readEntry(entry, prefix, found);
  return found;
}

/** Files of an input. */
export function readInput(files: FileList | null, prefix: string): NamedFile[] {
  return [...(files ?? [])].map((file) => ({ key: prefix + file.name, file }));
}

async function readEntry(
  entry: FileSystemEntry,
  prefix: string,
  found: NamedFile[],
): Promise<void> {
  if (found.length >= FILES_MAX) return;
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    found.push({ key: prefix + entry.name, file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // Answers at most 100 entries at a time.
  for (;;) {
    const children = await new Promise<FileSystemEntry[]>((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (children.length === 0) return;
    for (const child of children) await readEntry(child, `${prefix}${entry.name}/`, found);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
