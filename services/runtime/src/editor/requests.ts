// Requests of the editor about positions and ranges: sent to TypeScript about its view, and answered about the author's
// text.
import {
  mapCodeActions,
  mapCompletions,
  mapFolding,
  mapHover,
  mapInlayHints,
  mapLocations,
  mapSelection,
  mapSymbols,
  type Snapshot,
} from "./answers.ts";
import { toSourceRange, toViewRange, type Analysis } from "./document.ts";
import { isOwnDiagnostic } from "./problems.ts";
import { createSymbols } from "./symbols.ts";
import { mapTokens } from "./semantic-tokens.ts";
import type { Diagnostic, DocumentParams, LineRange } from "./protocol.ts";

/** A request that is forwarded. */
interface ForwardedRequest {
  /** Between two parts of the text: completions belong to the text before the cursor. */
  readonly side: "before" | "after";
  /** Maps the answer. */
  readonly map: (answer: never, context: AnswerContext) => unknown;
}

/** The files and settings that an answer is mapped with. */
interface AnswerContext {
  readonly snapshot: Snapshot;
  readonly analysis: Analysis;
  /** Number of the semantic token `keyword`; -1 if the editor has none. */
  readonly keywordToken: number;
}

type Locations = Parameters<typeof mapLocations>[2];

const LOCATIONS: ForwardedRequest = {
  side: "after",
  map: (answer: Locations, { snapshot, analysis }) => mapLocations(snapshot, analysis, answer),
};
const TOKENS: ForwardedRequest = {
  side: "after",
  map: (answer: { data: number[] } | null, { analysis, keywordToken }) =>
    answer && { data: mapTokens(analysis, answer.data, keywordToken) },
};

/** The methods that are forwarded, without those of which a part of the answer is ours. */
export const FORWARDED: Readonly<Record<string, ForwardedRequest>> = {
  "textDocument/hover": {
    side: "after",
    map: (answer: Parameters<typeof mapHover>[1], { analysis }) => mapHover(analysis, answer),
  },
  "textDocument/completion": {
    side: "before",
    map: (answer: Parameters<typeof mapCompletions>[1], { analysis }) =>
      mapCompletions(analysis, answer),
  },
  "textDocument/signatureHelp": { side: "before", map: (answer) => answer },
  "textDocument/definition": LOCATIONS,
  "textDocument/typeDefinition": LOCATIONS,
  "textDocument/implementation": LOCATIONS,
  "textDocument/references": LOCATIONS,
  "textDocument/documentHighlight": {
    side: "after",
    map: (answer: readonly { range: LineRange }[] | null, { analysis }) =>
      (answer ?? []).flatMap((one) => {
        const range = toSourceRange(analysis, one.range);
        return range === undefined ? [] : [{ ...one, range }];
      }),
  },
  "textDocument/documentSymbol": {
    side: "after",
    map: (answer: Parameters<typeof mapSymbols>[1] | null, { analysis }) =>
      createSymbols(analysis, mapSymbols(analysis, answer ?? [])),
  },
  "textDocument/codeAction": {
    side: "after",
    map: (answer: Parameters<typeof mapCodeActions>[2], { snapshot, analysis }) =>
      mapCodeActions(snapshot, analysis, answer),
  },
  "textDocument/foldingRange": {
    side: "after",
    map: (answer: Parameters<typeof mapFolding>[1] | null, { analysis }) =>
      mapFolding(analysis, answer ?? []),
  },
  "textDocument/selectionRange": {
    side: "after",
    map: (answer: Parameters<typeof mapSelection>[1][] | null, { analysis }) =>
      (answer ?? []).map((one) => mapSelection(analysis, one)),
  },
  "textDocument/inlayHint": {
    side: "after",
    map: (answer: Parameters<typeof mapInlayHints>[2] | null, { snapshot, analysis }) =>
      mapInlayHints(snapshot, analysis, answer ?? []),
  },
  "textDocument/semanticTokens/full": TOKENS,
  "textDocument/semanticTokens/range": TOKENS,
};

/** Methods whose range may be larger than what TypeScript has of it. */
const WIDE_RANGES = new Set(["textDocument/inlayHint", "textDocument/semanticTokens/range"]);

/** The parameters about the view; undefined if the position is not in it. */
export function toViewParams(
  method: string,
  params: DocumentParams,
  analysis: Analysis,
  uri: string,
): DocumentParams | undefined {
  const { view, viewLines, lines } = analysis;
  const { position, positions, range, context } = params;
  const side = FORWARDED[method]?.side ?? "after";
  const mapPosition = (at: LineRange["start"]): LineRange["start"] | undefined => {
    const offset = view.toView(lines.toOffset(at), side);
    return offset === undefined ? undefined : viewLines.toPosition(offset);
  };
  const mapped: Record<string, unknown> = { ...params, textDocument: { uri } };
  if (position !== undefined) {
    const at = mapPosition(position);
    if (at === undefined) return undefined;
    mapped["position"] = at;
  }
  if (positions !== undefined) {
    const all = positions.map(mapPosition);
    if (all.includes(undefined)) return undefined;
    mapped["positions"] = all;
  }
  if (range !== undefined) {
    const isWide = WIDE_RANGES.has(method);
    const end = viewLines.toPosition(view.text.length);
    const whole = { start: { line: 0, character: 0 }, end };
    const found = isWide ? whole : toViewRange(analysis, range);
    if (found === undefined) return undefined;
    mapped["range"] = found;
  }
  if (context?.diagnostics !== undefined) {
    const diagnostics = context.diagnostics.flatMap((one) => mapToView(analysis, one));
    mapped["context"] = { ...context, diagnostics };
  }
  return mapped as unknown as DocumentParams;
}

function mapToView(analysis: Analysis, diagnostic: Diagnostic): Diagnostic[] {
  const range = isOwnDiagnostic(diagnostic) ? undefined : toViewRange(analysis, diagnostic.range);
  return range === undefined ? [] : [{ ...diagnostic, range }];
}
