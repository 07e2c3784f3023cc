// The ornament beside forms: a trace for each service, as on the console's sign-in page. The style sheet colours it.
const LANES = 7;
const LANE_HEIGHT = 100;
const WIDTH = 880;
const POINTS = 90;

/** Draws the traces as an SVG that is used as a mask: one lane per service, from top to bottom. */
export function drawTraces(): string {
  const height = LANES * LANE_HEIGHT;
  const lines = Array.from(
    { length: LANES },
    (_, lane) => `<polyline points="${drawLine(lane)}" vector-effect="non-scaling-stroke"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none"><g fill="none" stroke="#000" stroke-width="1.6" stroke-linejoin="round">${lines.join("")}</g></svg>`;
}

// A walk that returns to the middle of its lane; the same on every start, so that browsers keep the file.
function drawLine(lane: number): string {
  let state = lane * 7919 + 17;
  let level = LANE_HEIGHT / 2;
  return Array.from({ length: POINTS + 1 }, (_, index) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    level += (state / 2_147_483_648 - 0.5) * 18 + (LANE_HEIGHT / 2 - level) * 0.08;
    const y = lane * LANE_HEIGHT + Math.min(Math.max(level, 6), LANE_HEIGHT - 6);
    return `${((index * WIDTH) / POINTS).toFixed(1)},${y.toFixed(1)}`;
  }).join(" ");
}
