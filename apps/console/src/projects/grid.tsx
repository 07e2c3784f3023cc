// A table of values that is wider than its page: it scrolls in both directions, and renders the rows in view.
import { useRef } from "preact/hooks";
import { Icon } from "../view/icon.tsx";
import { useRowWindow } from "../view/row-window.ts";
import { t } from "../words/words.ts";
import { CellEditor } from "./cell-editor.tsx";
import type { CellEditing } from "./cell-editing.ts";
import { readWidths, setWidth, WIDTH_MIN } from "./column-widths.ts";
import { describeCell, isNumberType, type Cell } from "./data.ts";
import { type CellPlace, useDoubleClick } from "./double-click.ts";

/** Step of a width by keyboard, in px. */
const WIDTH_STEP = 16;

/** A column of a grid. */
interface GridColumn {
  name: string;
  type: string;
  /** Place of its value in a row. */
  index: number;
  /** True if its values are dots: it has no order. */
  isSecret?: boolean;
  /** True for numbers of an expression, which has no type. */
  isNumber?: boolean;
}

/** Properties of a grid. */
interface GridProps<Row> {
  label: string;
  columns: readonly GridColumn[];
  rows: readonly Row[];
  idOf?: (row: Row) => string;
  selected?: string;
  onSelect?: (id: string) => void;
  /** Name of the sorted column, with `-` in front descending. */
  sort?: string;
  onSort?: (sort: string | undefined) => void;
  /** Names the table in the list of widths; without it they cannot be changed. */
  widthsKey?: string;
  /** Lets cells be edited. */
  editing?: CellEditing | undefined;
  /** Called by a double click on a cell while they cannot be edited. */
  onLocked?: () => void;
}

interface Values {
  readonly values: readonly Cell[];
}

export function DataGrid<Row extends Values>(props: GridProps<Row>) {
  const { label, columns, rows, idOf, editing, onLocked } = props;
  const { table, window } = useRowWindow(rows.length, undefined);
  const first = window?.first ?? 0;
  const last = window?.last ?? rows.length;
  const rowPx = window?.rowPx ?? 0;
  const edit = (place: CellPlace): void => {
    const row = rows.find((one, index) => (idOf?.(one) ?? String(index)) === place.row);
    const column = columns.find((one) => one.name === place.column);
    if (row === undefined || column === undefined || editing?.cell?.row === place.row) return;
    if (editing?.explain(column.name, row.values[column.index] ?? null) === undefined)
      editing?.begin(place);
  };
  const refuse = (): void => {
    // The second click has selected a word of what is below it by now.
    document.getSelection()?.removeAllRanges();
    onLocked?.();
  };
  const isInert = editing === undefined && onLocked === undefined;
  useDoubleClick(table, isInert ? undefined : editing === undefined ? refuse : edit);
  return (
    <div class="grid-box" role="region" aria-label={label} tabIndex={0}>
      <table
        ref={table}
        class="table data-grid"
        role={editing === undefined ? undefined : "grid"}
        aria-label={label}
        aria-rowcount={rows.length + 1}
      >
        <thead>
          <tr>
            {columns.map((column) => (
              <GridHead key={column.index} {...props} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {window !== undefined && <Spacer px={first * rowPx} />}
          {rows.slice(first, last).map((row, index) => (
            <GridRow
              key={idOf?.(row) ?? first + index}
              {...props}
              row={row}
              id={idOf?.(row) ?? String(first + index)}
              rowIndex={first + index + 2}
            />
          ))}
          {window !== undefined && <Spacer px={Math.max(0, rows.length - last) * rowPx} />}
        </tbody>
      </table>
    </div>
  );
}

function isNumeric({ type, isNumber }: GridColumn): boolean {
  return isNumber === true || isNumberType(type);
}

function GridHead<Row>(props: GridProps<Row> & { column: GridColumn }) {
  const { column, sort = "", onSort, widthsKey } = props;
  const { name, type, isSecret } = column;
  const isSorted = sort === name || sort === `-${name}`;
  const isDescending = sort.startsWith("-");
  const next = !isSorted ? name : isDescending ? undefined : `-${name}`;
  const title = (
    <>
      <span class="mono">{name}</span> <small class="i3">{type}</small>
    </>
  );
  const head = useRef<HTMLTableCellElement>(null);
  const change = (by: number): void => {
    const px = head.current?.offsetWidth ?? WIDTH_MIN;
    if (widthsKey !== undefined) setWidth(widthsKey, name, px + by);
  };
  return (
    <th
      ref={head}
      scope="col"
      class={isNumeric(props.column) ? "num" : ""}
      title={`${name} ${type}`}
      aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : undefined}
      style={styleOf(widthsKey, name)}
    >
      {onSort === undefined || isSecret === true ? (
        title
      ) : (
        <button
          type="button"
          class="sort"
          aria-keyshortcuts={
            widthsKey === undefined ? undefined : "Shift+ArrowLeft Shift+ArrowRight"
          }
          onClick={() => onSort(next)}
          onKeyDown={(event) => {
            if (!event.shiftKey || !/^Arrow(?:Left|Right)$/.test(event.key)) return;
            event.preventDefault();
            change(event.key === "ArrowLeft" ? -WIDTH_STEP : WIDTH_STEP);
          }}
        >
          {title}
          {isSorted && <Icon name={isDescending ? "down" : "up"} size={11} />}
        </button>
      )}
      {widthsKey !== undefined && <WidthHandle table={widthsKey} column={name} />}
    </th>
  );
}

/** The edge of a column, to be drawn; twice pressed, the column is as wide as its values again. */
function WidthHandle({ table, column }: { table: string; column: string }) {
  const from = useRef<{ x: number; px: number } | undefined>(undefined);
  return (
    <span
      class="width-handle"
      aria-hidden="true"
      title={t("Width: draw it, or Shift with an arrow key")}
      onPointerDown={(event) => {
        event.preventDefault();
        const element = event.currentTarget;
        element.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, px: element.parentElement!.offsetWidth };
      }}
      onPointerMove={(event) => {
        if (from.current === undefined) return;
        setWidth(table, column, from.current.px + event.clientX - from.current.x);
      }}
      onPointerUp={() => {
        from.current = undefined;
      }}
      onLostPointerCapture={() => {
        from.current = undefined;
      }}
      onDblClick={() => setWidth(table, column, undefined)}
    />
  );
}

function styleOf(widthsKey: string | undefined, column: string) {
  const px = widthsKey === undefined ? undefined : readWidths(widthsKey)[column];
  return px === undefined ? undefined : { minWidth: `${px}px`, maxWidth: `${px}px` };
}

type RowProps<Row> = GridProps<Row> & { row: Row; id: string; rowIndex: number };

function GridRow<Row extends Values>(props: RowProps<Row>) {
  const { columns, id, selected, onSelect, rowIndex } = props;
  const isSelected = id === selected;
  return (
    <tr
      data-row={id}
      class={isSelected ? "sel" : ""}
      aria-selected={isSelected ? "true" : undefined}
      aria-rowindex={rowIndex}
      tabIndex={onSelect === undefined ? undefined : 0}
      onClick={() => onSelect?.(id)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !event.defaultPrevented) onSelect?.(id);
        if (event.key === "ArrowRight" && event.target === event.currentTarget) {
          event.currentTarget.querySelector<HTMLElement>("td[tabindex]")?.focus();
        }
      }}
    >
      {columns.map((column) => (
        <GridCell key={column.index} {...props} column={column} />
      ))}
    </tr>
  );
}

function GridCell<Row extends Values>(props: RowProps<Row> & { column: GridColumn }) {
  const { row, id, column, columns, editing, widthsKey } = props;
  const { name, index, isSecret } = column;
  const value = row.values[index] ?? null;
  const { text, kind } = describeCell(value);
  const number = isNumeric(column) && kind === "cell-number" ? "num" : "";
  const cell = useRef<HTMLTableCellElement>(null);
  const reason = editing?.explain(name, value);
  const isEdited = editing?.cell?.row === id && editing.cell.column === name;
  const begin = (): void => {
    if (editing !== undefined && reason === undefined) editing.begin({ row: id, column: name });
  };
  const leave = (): void => {
    editing?.cancel();
    cell.current?.focus();
  };
  const save = async (next: string | null, step: -1 | 0 | 1): Promise<void> => {
    if (!(await editing!.save({ row: id, column: name }, next))) return;
    cell.current?.focus();
    const beside = columns[columns.indexOf(column) + step];
    const other = beside === undefined ? null : (row.values[beside.index] ?? null);
    if (step === 0 || beside === undefined || editing!.explain(beside.name, other) !== undefined) {
      return;
    }
    editing!.begin({ row: id, column: beside.name });
  };
  return (
    <td
      ref={cell}
      class={`mono ${kind} ${number} ${isEdited ? "cell-edited" : ""}`}
      role={editing === undefined ? undefined : "gridcell"}
      tabIndex={editing === undefined ? undefined : -1}
      title={editing === undefined || isEdited ? undefined : reason}
      style={styleOf(widthsKey, name)}
      data-column={name}
      onKeyDown={(event) => {
        if (editing === undefined || isEdited) return;
        if (event.key === "Enter" || event.key === "F2") begin();
        else if (!moveFocus(event.currentTarget, event.key)) return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      {isEdited ? (
        <CellEditor
          column={name}
          value={value}
          takesNull={editing.takesNull(name)}
          isBusy={editing.isBusy}
          onSave={(next, step) => void save(next, step)}
          onCancel={leave}
        />
      ) : isSecret === true && kind === "cell-null" && text !== "null" ? (
        <span title={t("hidden by its name")}>{text}</span>
      ) : (
        text.slice(0, 300)
      )}
    </td>
  );
}

/** Moves the focus from a cell by an arrow key, and with Escape to its row; false for other keys. */
function moveFocus(cell: HTMLTableCellElement, key: string): boolean {
  const row = cell.closest("tr")!;
  const upDown = (to: Element | null): HTMLElement | null =>
    to?.querySelector<HTMLElement>(`:scope > td:nth-child(${cell.cellIndex + 1})`) ?? null;
  const targets: Record<string, () => HTMLElement | null> = {
    ArrowLeft: () => cell.previousElementSibling as HTMLElement | null,
    ArrowRight: () => cell.nextElementSibling as HTMLElement | null,
    ArrowUp: () => upDown(row.previousElementSibling),
    ArrowDown: () => upDown(row.nextElementSibling),
    Escape: () => row,
  };
  const find = targets[key];
  const target = find?.();
  target?.focus();
  target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  return find !== undefined;
}

function Spacer({ px }: { px: number }) {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${px}px` }} />;
}
