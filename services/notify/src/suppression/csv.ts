// CSV (RFC 4180).

/** Parses CSV: quoted cells, CRLF or LF. Empty lines are skipped. Throws a SyntaxError that names the line. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n"]*))(,|\r\n|\n|$)/gy;
  const body = text.replace(/^\ufeff/, "");
  for (;;) {
    const { lastIndex } = cell;
    const found = cell.exec(body);
    if (found === null) {
      const line = body.slice(0, lastIndex).split("\n").length;
      throw new SyntaxError(`line ${line}: a quote is not closed, or in the middle of a cell`);
    }
    const [, quoted, plain = "", end] = found;
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== ",") {
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
    }
    if (end === "" || cell.lastIndex >= body.length) {
      if (end === ",") row.push("");
      break;
    }
  }
  if (row.length > 0) rows.push(row);
  return rows;
}

/** Formats rows with CRLF. Cells that a spreadsheet would run as a formula get a leading apostrophe. */
export function formatCsv(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(formatCell).join(",")}\r\n`).join("");
}

function formatCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
