// JSON with colours, as text nodes: payloads are data of strangers.
import type { ComponentChild } from "preact";
import { formatJson } from "../format/format.ts";
import { t } from "../words/words.ts";

const TOKEN =
  /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|([{}[\],:])/g;
const SHOWN_MAX = 65_536;

/** Colours the tokens of a text; `mark` is highlighted. */
export function colourJson(text: string, mark = ""): ComponentChild[] {
  const parts: ComponentChild[] = [];
  let end = 0;
  const push = (piece: string, kind: string): void => {
    const marked = mark === "" ? piece : highlight(piece, mark);
    parts.push(kind === "" ? marked : <span class={kind}>{marked}</span>);
  };
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > end) push(text.slice(end, found.index), "");
    const [whole, string, colon, number] = found;
    if (string !== undefined) {
      push(string, colon === undefined ? "js-s" : "js-k");
      if (colon !== undefined) push(colon, "js-p");
    } else if (number !== undefined) push(number, "js-n");
    else push(whole, found[5] === undefined ? "js-n" : "js-p");
    end = found.index + whole.length;
  }
  if (end < text.length) push(text.slice(end), "");
  return parts;
}

/** Marks each occurrence of a text, whatever its case. */
export function highlight(text: string, mark: string): ComponentChild {
  if (mark === "") return text;
  const parts: ComponentChild[] = [];
  const lower = text.toLowerCase();
  const wanted = mark.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at !== -1; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return from === 0 ? text : [...parts, text.slice(from)];
}

/** A block of JSON, indented, or of any other text. `label` tells several blocks of a page apart. */
export function JsonBlock({ text, mark, label }: { text: string; mark?: string; label?: string }) {
  const shown = formatJson(text);
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label ?? t("Content")}>
      {colourJson(shown.slice(0, SHOWN_MAX), mark)}
      {shown.length > SHOWN_MAX && (
        <span class="i3">{`\n… ${t("{n} more characters", { n: shown.length - SHOWN_MAX })}`}</span>
      )}
    </pre>
  );
}
