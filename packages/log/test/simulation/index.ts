// A disk that simulates power cuts, for tests of packages that use the log.
export { Random } from "./random.ts";
export { SimDisk } from "./sim-disk.ts";
