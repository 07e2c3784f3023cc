// A rename of a database: its file is named like the declaration, so the old name is added as an option.
import type { StoreDeclaration } from "../language/declaration.ts";
import { findFileName } from "../language/databases.ts";
import type { Analysis } from "./document.ts";
import type { DocumentChange, TextEdit, WorkspaceEdit } from "./protocol.ts";
import type { Workspace } from "./workspace.ts";

/** Adds the option `name` to the databases whose declared name an edit changes. */
export function keepDatabaseFiles(workspace: Workspace, edit: WorkspaceEdit): WorkspaceEdit {
  const complete = (uri: string, edits: readonly TextEdit[]): readonly TextEdit[] => {
    const document = workspace.find(uri);
    if (document?.isService !== true) return edits;
    const analysis = document.analyze();
    const stores = analysis.declarations.filter(({ kind }) => kind === "database");
    const added = stores.flatMap((one) => keepFile(analysis, one as StoreDeclaration, edits));
    return [...edits, ...added];
  };
  const { changes, documentChanges } = edit;
  const mapped = Object.entries(changes ?? {}).map(
    ([uri, edits]) => [uri, complete(uri, edits)] as const,
  );
  const mapDocument = (change: DocumentChange): DocumentChange => {
    const { textDocument, edits } = change;
    if (textDocument === undefined || edits === undefined) return change;
    return { textDocument, edits: complete(textDocument.uri, edits) };
  };
  return {
    ...(changes && { changes: Object.fromEntries(mapped) }),
    ...(documentChanges && { documentChanges: documentChanges.map(mapDocument) }),
  };
}

function keepFile(
  { source, lines }: Analysis,
  declaration: StoreDeclaration,
  edits: readonly TextEdit[],
): TextEdit[] {
  const { nameRange, options } = declaration;
  const { name, offset } = findFileName(declaration, source);
  const isRenamed = edits.some(({ range }) => lines.toOffset(range.start) === nameRange.start);
  // It has the option already.
  if (!isRenamed || offset !== nameRange.start) return [];
  const option = `name: ${JSON.stringify(name)}`;
  if (options === undefined) {
    const end = lines.toPosition(nameRange.end);
    return [{ range: { start: end, end }, newText: ` { ${option} }` }];
  }
  const inner = lines.toPosition(options.start + 1);
  const isEmpty = source.slice(options.start + 1, options.end - 1).trim() === "";
  return [{ range: { start: inner, end: inner }, newText: ` ${option}${isEmpty ? " " : ","}` }];
}
