// A plain comparison of vectors, as a short program makes it: what an index of them is measured against.

/** Ranks rows by cosine and keeps the `k` nearest. */
export function rankPlainly(
  rows: readonly Float32Array[],
  query: Float32Array,
  k: number,
): { index: number; distance: number }[] {
  const distances = rows.map((row, index) => {
    let product = 0;
    let square = 0;
    for (let at = 0; at < row.length; at += 1) {
      product += row[at]! * query[at]!;
      square += row[at]! * row[at]!;
    }
    return { index, distance: 1 - product / Math.sqrt(square) };
  });
  return distances.sort((a, b) => a.distance - b.distance).slice(0, k);
}
