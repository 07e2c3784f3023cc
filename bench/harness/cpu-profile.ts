// Reads a V8 CPU profile (`.cpuprofile`) into self time per function.

/** Self time of one function, as a share of the time in which the thread was not idle. */
export interface FunctionShare {
  name: string;
  /** The file within the repository, the `node:` module, or "" for native code. */
  file: string;
  share: number;
}

interface ProfileNode {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
}

interface CpuProfile {
  nodes: ProfileNode[];
  samples: number[];
  timeDeltas: number[];
}

/**
 * Busy time in µs and functions, most expensive first, of the second half of a profile. The first half contains startup
 * and code that is not compiled yet.
 */
export function readFunctionShares(
  text: string,
  repository: string,
): { busyUs: number; functions: FunctionShare[] } {
  const profile = JSON.parse(text) as CpuProfile;
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const selfUs = new Map<string, { name: string; file: string; us: number }>();
  const halfUs = profile.timeDeltas.reduce((sum, us) => sum + us, 0) / 2;
  let passedUs = 0;
  let busyUs = 0;
  for (const [index, id] of profile.samples.entries()) {
    const frame = frames.get(id);
    const us = profile.timeDeltas[index] ?? 0;
    passedUs += us;
    if (passedUs < halfUs) continue;
    if (frame === undefined || frame.functionName === "(idle)" || us <= 0) continue;
    busyUs += us;
    const file = frame.url.replace(/^file:\/\//, "").replace(repository, "");
    const name =
      frame.functionName === "" ? `anonymous:${frame.lineNumber + 1}` : frame.functionName;
    const key = `${file} ${name} ${frame.lineNumber}`;
    const entry = selfUs.get(key) ?? { name, file, us: 0 };
    entry.us += us;
    selfUs.set(key, entry);
  }
  const functions = [...selfUs.values()]
    .sort((a, b) => b.us - a.us)
    .map(({ name, file, us }) => ({ name, file, share: us / busyUs }));
  return { busyUs, functions };
}
