// One drive: a folder with its identity, its files and whether they can be reached.
import { OpenFiles } from "@platform/kernel/files";
import { BlobReader } from "../blob-reader.ts";
import { closeFile, FolderSync, openFile, type StoreFolders } from "../../disk/files.ts";
import type { FrameMemory } from "../frame-memory.ts";

/** Where bytes are written to and read from. A store without several drives has one of these as well. */
export class Drive {
  /** The place that it fills among the drives of the store. */
  readonly slot: number;
  readonly folders: StoreFolders;
  readonly folderSync = new FolderSync();
  /** Descriptors of files that are read. */
  readonly files: OpenFiles<number>;
  readonly reader: BlobReader;
  /** Why it takes no part, if so. */
  absence: string | undefined;
  /** How often it has gone. */
  losses = 0;

  constructor(slot: number, folders: StoreFolders, openFilesMax: number, memory: FrameMemory) {
    this.slot = slot;
    this.folders = folders;
    this.files = new OpenFiles({
      filesMax: openFilesMax,
      open: (path) => openFile(path, "r"),
      close: closeFile,
    });
    this.reader = new BlobReader(folders, this.files, memory);
  }

  get isPresent(): boolean {
    return this.absence === undefined;
  }
}
