// Tables. Rows can be selected, the selection is in the address; of long tables only the rows in view are rendered.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../words/words.ts";
import { Icon } from "./icon.tsx";
import { useRowWindow } from "./row-window.ts";

/** A column of a table. */
export interface Column<Row> {
  title: string;
  render: (row: Row) => ComponentChildren;
  /** Class of the column: its width, and whether phones show it. */
  kind?: string;
  isNumber?: boolean;
  /** Value by which the column sorts. */
  sort?: (row: Row) => string | number;
}

/** Properties of a table. */
interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  idOf: (row: Row) => string;
  selected?: string | undefined;
  onSelect?: (row: Row) => void;
  /** Makes the table tall rows with two lines. */
  isTall?: boolean;
  checked?: ReadonlySet<string>;
  onCheck?: (ids: ReadonlySet<string>) => void;
  /** Called when the end of the list comes into view. */
  onEnd?: (() => void) | undefined;
}

/** A table. */
export function Table<Row>(props: TableProps<Row>) {
  const { columns, rows, idOf, selected, onSelect, checked, onCheck } = props;
  const order = useSignal<{ index: number; isDescending: boolean } | undefined>(undefined);
  const current = order.value;
  const sorted = useMemo(() => {
    const by = current === undefined ? undefined : columns[current.index]?.sort;
    if (by === undefined) return rows;
    const direction = current?.isDescending === true ? -1 : 1;
    return rows.toSorted((one, other) => direction * compare(by(one), by(other)));
  }, [rows, current]);
  const toggle = (id: string): void => {
    const next = new Set(checked);
    if (!next.delete(id)) next.add(id);
    onCheck?.(next);
  };
  const { table, window } = useRowWindow(sorted.length, props.onEnd);
  const first = window?.first ?? 0;
  const shown = window === undefined ? sorted : sorted.slice(first, window.last);
  const isAll = rows.length > 0 && rows.every((row) => checked?.has(idOf(row)) === true);
  return (
    <table
      ref={table}
      class={props.isTall === true ? "table tall" : "table"}
      aria-label={props.label}
      aria-rowcount={window === undefined ? undefined : sorted.length + 1}
    >
      <thead>
        <tr>
          {onCheck !== undefined && (
            <th class="col-check">
              <input
                type="checkbox"
                aria-label={t("Select all")}
                checked={isAll}
                onChange={() => onCheck(isAll ? new Set() : new Set(rows.map(idOf)))}
              />
            </th>
          )}
          {columns.map((column, index) => (
            <th
              key={column.title}
              class={classOf(column)}
              scope="col"
              aria-sort={
                current?.index === index
                  ? current.isDescending
                    ? "descending"
                    : "ascending"
                  : undefined
              }
            >
              {column.sort === undefined ? (
                column.title
              ) : (
                <button
                  type="button"
                  class="sort"
                  onClick={() => {
                    order.value = {
                      index,
                      isDescending: current?.index === index && !current.isDescending,
                    };
                  }}
                >
                  {column.title}
                  {current?.index === index && (
                    <Icon name={current.isDescending ? "down" : "up"} size={11} />
                  )}
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {window !== undefined && <Spacer rows={first} rowPx={window.rowPx} />}
        {shown.map((row, index) => {
          const id = idOf(row);
          return (
            <tr
              key={id}
              data-row={id}
              class={id === selected ? "sel" : ""}
              aria-selected={id === selected ? "true" : undefined}
              aria-rowindex={window === undefined ? undefined : first + index + 2}
              tabIndex={onSelect === undefined ? undefined : 0}
              onClick={(event) => {
                if ((event.target as Element).closest("a, button, input, label") === null)
                  onSelect?.(row);
              }}
              onKeyDown={(event) => {
                if (event.key === "Enter" && event.target === event.currentTarget) onSelect?.(row);
              }}
            >
              {onCheck !== undefined && (
                <td class="col-check">
                  <input
                    type="checkbox"
                    aria-label={t("Select {name}", { name: id })}
                    checked={checked?.has(id) ?? false}
                    onChange={() => toggle(id)}
                  />
                </td>
              )}
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.render(row)}
                </td>
              ))}
            </tr>
          );
        })}
        {window !== undefined && (
          <Spacer rows={sorted.length - first - shown.length} rowPx={window.rowPx} />
        )}
      </tbody>
    </table>
  );
}

function Spacer({ rows, rowPx }: { rows: number; rowPx: number }) {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${rows * rowPx}px` }} />;
}

function classOf<Row>({ kind = "", isNumber = false }: Column<Row>): string {
  return isNumber ? `${kind} num` : kind;
}

function compare(one: string | number, other: string | number): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other));
}
