// Source maps reduced to the author's files: that of all packages takes longer to read than the service to start.
import { relative } from "node:path";
import { decode, encode } from "@jridgewell/sourcemap-codec";

interface CompleteMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** Keeps the sources that `keeps` accepts, relative to the working directory, which the map's sources are relative to. */
export function keepSources(map: CompleteMap, keeps: (path: string) => boolean): string {
  const cwd = process.cwd();
  const paths = map.sources.map((source) => new URL(source, `file://${cwd}/`).pathname);
  const kept = paths.filter((path, index) => !map.sources[index]!.startsWith("\0") && keeps(path));
  const newIndexes = paths.map((path) => kept.indexOf(path));
  const mappings = decode(map.mappings).map((line) =>
    line.flatMap((segment): typeof line => {
      const [column, source, row = 0, from = 0] = segment;
      const index = source === undefined ? -1 : newIndexes[source]!;
      return index === -1 ? [] : [[column, index, row, from]];
    }),
  );
  return JSON.stringify({
    version: 3,
    names: [],
    sources: kept.map((path) => relative(cwd, path)),
    mappings: encode(mappings),
  });
}
