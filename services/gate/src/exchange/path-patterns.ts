// Patterns of whole paths, such as `/notes/:id`: decides which paths below its prefix a route serves.
import { readPatternSegment } from "../shared-state/index.ts";

interface Node {
  /** By segment, as it is in normalized paths. */
  readonly literals: Map<string, Node>;
  one: Node | undefined;
  /** A pattern ends here. */
  isEnd: boolean;
  /** A pattern continues with any segments. */
  hasRest: boolean;
}

const SLASH = 0x2f;

/** The patterns of a route. A match visits each node of their tree at most once. */
export class PathPatterns {
  readonly #root = createNode();

  /** `patterns` start with `/` and are normalized like prefixes. */
  constructor(patterns: readonly string[]) {
    for (const pattern of patterns) this.#add(pattern.slice(1).split("/"));
  }

  /** True if the normalized path `bytes[start, end)` matches a pattern. */
  matches(bytes: Uint8Array, start: number, end: number): boolean {
    return matchBelow(this.#root, bytes, start + 1, end);
  }

  #add(segments: readonly string[]): void {
    let node = this.#root;
    for (const [index, segment] of segments.entries()) {
      const kind = readPatternSegment(segment, index === segments.length - 1);
      if (kind === "rest") {
        node.hasRest = true;
        return;
      }
      if (kind === "one") node = node.one ??= createNode();
      else {
        const next = node.literals.get(segment) ?? createNode();
        node.literals.set(segment, next);
        node = next;
      }
    }
    node.isEnd = true;
  }
}

function createNode(): Node {
  return { literals: new Map(), one: undefined, isEnd: false, hasRest: false };
}

// `at` is the start of a segment, or beyond `end` if there is none.
function matchBelow(node: Node, bytes: Uint8Array, at: number, end: number): boolean {
  if (at > end) return node.isEnd;
  if (node.hasRest) return true;
  let segmentEnd = at;
  while (segmentEnd < end && bytes[segmentEnd] !== SLASH) segmentEnd++;
  const { literals, one } = node;
  if (literals.size > 0) {
    const next = literals.get(readSegment(bytes, at, segmentEnd));
    if (next !== undefined && matchBelow(next, bytes, segmentEnd + 1, end)) return true;
  }
  return one !== undefined && segmentEnd > at && matchBelow(one, bytes, segmentEnd + 1, end);
}

function readSegment(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

/**
 * Text by which the most specific of the patterns that match a path comes first: fixed segments before parameters before the
 * rest, from left to right. Different patterns that match the same path differ in it.
 */
export function rankPattern(pattern: string): string {
  const segments = pattern.slice(1).split("/");
  const kinds = segments.map((segment, index) => {
    const kind = readPatternSegment(segment, index === segments.length - 1);
    return kind === undefined ? "0" : kind === "one" ? "1" : "2";
  });
  return kinds.join("");
}
