// A disk that remembers what a power cut may take, for tests of what stands on the log.
export { Random } from "./random.ts";
export { SimDisk } from "./sim-disk.ts";
