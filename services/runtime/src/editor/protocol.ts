// The parts of the Language Server Protocol 3.17 that are read or written here
// (https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/).
import type { LinePosition } from "../language/line-index.ts";

export type { LinePosition } from "../language/line-index.ts";

/** A range of lines and characters; its end is exclusive. */
export interface LineRange {
  readonly start: LinePosition;
  readonly end: LinePosition;
}

/** A message about a range. */
export interface Diagnostic {
  readonly range: LineRange;
  /** 1 error, 2 warning, 3 information, 4 hint. */
  readonly severity?: number;
  readonly code?: number | string;
  readonly source?: string;
  readonly message: string;
  readonly tags?: readonly number[];
  readonly relatedInformation?: readonly {
    readonly location: Location;
    readonly message: string;
  }[];
}

/** A range of a file. */
export interface Location {
  readonly uri: string;
  readonly range: LineRange;
}

/** A replacement in a file. */
export interface TextEdit {
  readonly range: LineRange;
  readonly newText: string;
}

/** Replacements in files. */
export interface WorkspaceEdit {
  readonly changes?: Readonly<Record<string, readonly TextEdit[]>>;
  readonly documentChanges?: readonly DocumentChange[];
}

/** Replacements in one file, or an operation on files, which has a kind. */
export interface DocumentChange {
  readonly kind?: string;
  readonly textDocument?: { readonly uri: string; readonly version?: number | null };
  readonly edits?: readonly TextEdit[];
}

/** Suggestions at a position. */
export interface CompletionList {
  readonly isIncomplete: boolean;
  readonly itemDefaults?: { readonly editRange?: EditRange; readonly [key: string]: unknown };
  readonly items: readonly CompletionItem[];
}

/** A range, or one each for insertion and replacement. */
export type EditRange = LineRange | { readonly insert: LineRange; readonly replace: LineRange };

/** A suggestion at a position, and the edits that accepting it makes. */
export interface CompletionItem {
  readonly label: string;
  readonly kind?: number;
  readonly detail?: string;
  readonly documentation?: unknown;
  readonly sortText?: string;
  readonly filterText?: string;
  readonly insertText?: string;
  /** 1 plain text, 2 snippet. */
  readonly insertTextFormat?: number;
  readonly textEdit?: {
    readonly newText: string;
    readonly range?: LineRange;
    readonly insert?: LineRange;
    readonly replace?: LineRange;
  };
  readonly additionalTextEdits?: readonly TextEdit[];
  readonly data?: unknown;
}

/** The text at a position. */
export interface Hover {
  readonly contents: unknown;
  readonly range?: LineRange;
}

/** A named part of a file. */
export interface DocumentSymbol {
  readonly name: string;
  readonly detail?: string;
  readonly kind: number;
  readonly range: LineRange;
  readonly selectionRange: LineRange;
  readonly children?: readonly DocumentSymbol[];
}

/** Parameters of requests about a document; further members depend on the method. */
export interface DocumentParams {
  readonly textDocument: { readonly uri: string };
  readonly position?: LinePosition;
  readonly positions?: readonly LinePosition[];
  readonly range?: LineRange;
  readonly context?: {
    readonly diagnostics?: readonly Diagnostic[];
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

/** Codes of errors. */
export const ERROR_CODES = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  notInitialized: -32_002,
  requestFailed: -32_803,
  requestCancelled: -32_800,
} as const;

/** An error answer to a request. */
export class ResponseError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "ResponseError";
    this.code = code;
  }
}
