// CSV (RFC 4180).

/** Parses CSV: quoted cells, CRLF or LF. Empty lines are skipped. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n"]*))(,|\r\n|\n|$)/gy;
  const body = text.replace(/^\ufeff/, "");
  for (let found = cell.exec(body); found !== null; found = cell.exec(body)) {
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
