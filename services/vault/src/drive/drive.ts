// One drive: a folder with its identity, its files and whether they can be reached.
import { BlobReader } from "../blob/blob-reader.ts";
import { FolderSync, type StoreFolders } from "../blob/disk.ts";
import type { FrameMemory } from "../blob/frame-memory.ts";
import { OpenFiles } from "../blob/open-files.ts";

/** Where bytes are written to and read from. A store without several drives has one of these as well. */
export class Drive {
  /** The place that it fills among the drives of the store. */
  readonly slot: number;
  readonly folders: StoreFolders;
  readonly folderSync = new FolderSync();
  readonly files: OpenFiles;
  readonly reader: BlobReader;
  /** Why it takes no part, if so. */
  absence: string | undefined;
  /** How often it has gone. */
  losses = 0;

  constructor(slot: number, folders: StoreFolders, openFilesMax: number, memory: FrameMemory) {
    this.slot = slot;
    this.folders = folders;
    this.files = new OpenFiles(openFilesMax);
    this.reader = new BlobReader(folders, this.files, memory);
  }

  get isPresent(): boolean {
    return this.absence === undefined;
  }
}
