// One drive: a folder with its identity, its open files, and whether it is present.
import { OpenFiles } from "@platform/kernel/files";
import { BlobReader } from "../blob-reader.ts";
import { closeFile, FolderSync, openFile, type StoreFolders } from "../../disk/files.ts";
import type { FrameMemory } from "../frame-memory.ts";

/** A location that bytes are written to and read from. A store on a single folder has one as well. */
export class Drive {
  /** Its slot among the drives of the store. */
  readonly slot: number;
  readonly folders: StoreFolders;
  readonly folderSync = new FolderSync();
  /** Descriptors of files that are being read. */
  readonly files: OpenFiles<number>;
  readonly reader: BlobReader;
  /** The reason of its absence, if it is absent. */
  absence: string | undefined;
  /** Number of times that it has disappeared. */
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
