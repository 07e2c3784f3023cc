// The difference of two texts by lines.
import { t } from "../words/words.ts";

const LINES_MAX = 2_000;

interface DiffLine {
  kind: "same" | "add" | "del";
  text: string;
}

/** Compares by lines: the longest common subsequence. */
function diffLines(before: string, after: string): DiffLine[] {
  const old = splitLines(before);
  const next = splitLines(after);
  let start = 0;
  while (start < old.length && start < next.length && old[start] === next[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < next.length - start &&
    old[old.length - 1 - end] === next[next.length - 1 - end]
  ) {
    end += 1;
  }
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...old.slice(0, start).map(same),
    ...compareMiddle(old.slice(start, old.length - end), next.slice(start, next.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

function splitLines(text: string): string[] {
  return text === "" ? [] : text.split("\n").slice(0, LINES_MAX);
}

function compareMiddle(old: readonly string[], next: readonly string[]): DiffLine[] {
  const width = next.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = next.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === next[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < next.length) {
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push({ kind: "same", text: old[i]! });
      i += 1;
      j += 1;
    } else if (
      i < old.length &&
      (j >= next.length || lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)
    ) {
      lines.push({ kind: "del", text: old[i]! });
      i += 1;
    } else {
      lines.push({ kind: "add", text: next[j]! });
      j += 1;
    }
  }
  return lines;
}

/** Both texts in one, with what is removed and added; `label` tells several on a page apart. */
export function Diff(props: { before: string; after: string; label?: string }) {
  const { before, after, label = t("Difference") } = props;
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {diffLines(before, after).map((line, index) => (
        // Lines have no identity of their own.
        // oxlint-disable-next-line react/no-array-index-key
        <span key={index} class={line.kind === "same" ? "" : line.kind}>
          {`${line.kind === "add" ? "+ " : line.kind === "del" ? "− " : "  "}${line.text}\n`}
        </span>
      ))}
    </pre>
  );
}
