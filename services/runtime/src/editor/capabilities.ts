// Capabilities: what the editor can do, as TypeScript is told, and what this server can do, as the editor is told.

/** Capabilities of an editor, as far as they are read. */
export interface ClientCapabilities {
  readonly general?: object;
  readonly textDocument?: {
    readonly diagnostic?: object;
    readonly publishDiagnostics?: object;
    readonly [key: string]: unknown;
  };
  readonly workspace?: {
    readonly diagnostics?: { readonly refreshSupport?: boolean };
    readonly didChangeWatchedFiles?: { readonly dynamicRegistration?: boolean };
    readonly [key: string]: unknown;
  };
  readonly window?: { readonly workDoneProgress?: boolean; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** Answers of TypeScript to `initialize`, as far as they are read. */
export interface TypeCapabilities {
  readonly completionProvider?: { readonly triggerCharacters?: readonly string[] };
  readonly semanticTokensProvider?: {
    readonly legend: { readonly tokenTypes: readonly string[] };
  };
  readonly [key: string]: unknown;
}

/** Abilities of TypeScript that are passed on: those whose positions are mapped. */
const PASSED = [
  "hoverProvider",
  "signatureHelpProvider",
  "definitionProvider",
  "typeDefinitionProvider",
  "implementationProvider",
  "referencesProvider",
  "documentHighlightProvider",
  "documentSymbolProvider",
  "codeActionProvider",
  "workspaceSymbolProvider",
  "documentFormattingProvider",
  "documentRangeFormattingProvider",
  "renameProvider",
  "foldingRangeProvider",
  "selectionRangeProvider",
  "semanticTokensProvider",
  "inlayHintProvider",
];

/** True if the editor pulls messages, and can be told to pull them again. */
export function canPull({ textDocument, workspace }: ClientCapabilities): boolean {
  const canRefresh = workspace?.diagnostics?.refreshSupport === true;
  return textDocument?.diagnostic !== undefined && canRefresh;
}

/** True if the editor reports changes of files on disk. */
export function canWatch({ workspace }: ClientCapabilities): boolean {
  return workspace?.didChangeWatchedFiles?.dynamicRegistration === true;
}

/** A registration that TypeScript asks an editor for. */
export interface Registration {
  readonly id: string;
  /** Such as `workspace/didChangeConfiguration`. */
  readonly method: string;
}

/** Registrations that the editor accepts: TypeScript asks some editors for more, and they warn their users. */
export function selectAccepted(
  registrations: readonly Registration[],
  client: ClientCapabilities,
): Registration[] {
  return registrations.filter(({ method }) => {
    const [area = "", name = ""] = method.split("/");
    const abilities = client[area] as Record<string, unknown> | undefined;
    const ability = abilities?.[name] as { dynamicRegistration?: boolean } | undefined;
    return ability?.dynamicRegistration === true;
  });
}

/** True if suggestions may be snippets. */
export function hasSnippets({ textDocument }: ClientCapabilities): boolean {
  const { completionItem } = (textDocument?.["completion"] ?? {}) as {
    completionItem?: { snippetSupport?: boolean };
  };
  return completionItem?.snippetSupport === true;
}

/** Capabilities for TypeScript: the editor's, with those that this server adds. */
export function createTypeClientCapabilities(client: ClientCapabilities): ClientCapabilities {
  return {
    ...client,
    general: { ...client.general, positionEncodings: ["utf-16"] },
    textDocument: {
      ...client.textDocument,
      diagnostic: { dynamicRegistration: false, relatedDocumentSupport: false },
      // Full answers only: the difference to an earlier one is that of views.
      ...(client.textDocument?.["semanticTokens"] !== undefined && {
        semanticTokens: {
          ...(client.textDocument["semanticTokens"] as object),
          requests: { full: true, range: true },
        },
      }),
    },
    workspace: {
      ...client.workspace,
      diagnostics: { refreshSupport: true },
    },
  };
}

/** Capabilities for an editor whose own TypeScript does the rest. */
export function createStatementCapabilities(isPulled: boolean): object {
  return {
    ...createOwnCapabilities(isPulled),
    completionProvider: { triggerCharacters: [" ", "."], resolveProvider: false },
  };
}

/** Capabilities that need no TypeScript, as the answers come from this server alone. */
function createOwnCapabilities(isPulled: boolean): object {
  return {
    positionEncoding: "utf-16",
    textDocumentSync: { openClose: true, change: 2, save: { includeText: false } },
    hoverProvider: true,
    definitionProvider: true,
    ...(isPulled && {
      diagnosticProvider: {
        identifier: "platform",
        interFileDependencies: true,
        workspaceDiagnostics: false,
      },
    }),
  };
}

/** Capabilities for the editor; `types` is undefined without TypeScript. */
export function createServerCapabilities(
  types: TypeCapabilities | undefined,
  isPulled: boolean,
): object {
  const passed = PASSED.flatMap((name) => {
    const value = types?.[name];
    return value === undefined ? [] : [[name, value]];
  });
  const triggers = types?.completionProvider?.triggerCharacters ?? [" ", "."];
  return {
    ...createOwnCapabilities(isPulled),
    completionProvider: { triggerCharacters: triggers, resolveProvider: types !== undefined },
    documentSymbolProvider: true,
    ...Object.fromEntries(passed),
  };
}
