// The parts of an upload: storage accepts at most 10 000, all but the last of at least 5 MiB.

const MIB = 1024 * 1024;
const PARTS_MAX = 10_000;
/** Files up to this size are sent at once. */
const WHOLE_BYTES_MAX = 16 * MIB;
/** A part is what a lost connection costs. */
const PART_BYTES_MIN = 8 * MIB;

/** A range of a file, numbered from 1. */
export interface PartRange {
  part: number;
  start: number;
  end: number;
}

/** The parts of a file; one part if it is sent at once. Throws a RangeError for files above 10 000 × 5 GiB. */
export function planParts(size: number): PartRange[] {
  if (size <= WHOLE_BYTES_MAX) return [{ part: 1, start: 0, end: size }];
  const least = Math.ceil(size / PARTS_MAX / MIB) * MIB;
  const bytes = Math.max(PART_BYTES_MIN, least);
  if (bytes > 5 * 1024 * MIB) throw new RangeError("The file is larger than an object can be.");
  return Array.from({ length: Math.ceil(size / bytes) }, (_, index) => ({
    part: index + 1,
    start: index * bytes,
    end: Math.min(size, (index + 1) * bytes),
  }));
}
