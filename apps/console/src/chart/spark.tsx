// A small line of a figure without axes.
const WIDTH = 120;
const HEIGHT = 28;

/** A sparkline; decorative, its numbers stand beside it. */
export function Spark({ values, hue }: { values: readonly (number | null)[]; hue: string }) {
  const known = values.filter((value) => value !== null);
  const max = Math.max(1e-9, ...known);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(HEIGHT - 3 - ((value ?? 0) / max) * (HEIGHT - 6)).toFixed(1)}`,
  );
  return (
    <svg
      class={`spark hue ${hue}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {known.length > 1 && (
        <>
          <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
          <polyline points={points.join(" ")} vector-effect="non-scaling-stroke" />
        </>
      )}
    </svg>
  );
}
